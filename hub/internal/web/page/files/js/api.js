// Requests to the hub, and their failures. Every address is relative to the page's own.

// Failure is the reason for a missing answer: auth, refused, missing, busy, bad (the request is
// wrong), hub (the hub failed), away (no connection).
export class Failure extends Error {
  constructor(kind, status, message) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

const patience = 30000; // milliseconds

const kinds = { 400: "bad", 401: "auth", 403: "refused", 404: "missing", 422: "bad", 429: "busy", 503: "busy" };

// health is the last failure by kind. The bar above the page shows it until an answer arrives.
export const health = { failure: undefined, since: 0, changed: () => {} };

function healthy(failure) {
  const was = health.failure?.kind;
  health.failure = failure;
  if (was !== failure?.kind) {
    health.since = Date.now() / 1000;
    health.changed();
  }
}

// get requests a document. It leaves out undefined and empty parameters.
export async function get(path, params = {}, signal) {
  const url = new URL(path, document.baseURI);
  url.hash = "";
  for (const [key, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, value);
  }
  let answer, body;
  // A hub that accepts a request and never answers would stop the page: after half a minute it counts
  // as away.
  const end = new AbortController(), give = () => end.abort();
  const timer = setTimeout(give, patience);
  signal?.addEventListener("abort", give);
  try {
    if (signal?.aborted) give();
    answer = await fetch(url, { signal: end.signal, headers: { Accept: "application/json" } });
    body = await answer.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    const failure = new Failure("away", 0, "the hub does not answer");
    healthy(failure);
    throw failure;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", give);
  }
  let said;
  try {
    said = JSON.parse(body);
  } catch {
    said = undefined; // a proxy's page, or half an answer
  }
  if (answer.ok && said !== undefined) {
    healthy(undefined);
    return said;
  }
  const kind = answer.ok ? "hub" : kinds[answer.status] ?? "hub";
  const failure = new Failure(kind, answer.status, typeof said?.error === "string" ? said.error : answer.ok ? "the answer is not JSON" : "status " + answer.status);
  // A bad request says nothing about the state of the hub.
  if (kind !== "bad" && kind !== "missing") healthy(failure);
  throw failure;
}

const ours = "api/linerate/v1/";

export const status = (signal) => get(ours + "status", {}, signal);
export const hosts = (signal) => get(ours + "hosts", {}, signal);
export const findings = (signal) => get(ours + "findings", {}, signal);
export const fleet = (params, signal) => get(ours + "fleet", params, signal);
export const fleetHosts = (params, signal) => get(ours + "fleet/hosts", params, signal);
export const fleetMesh = (params, signal) => get(ours + "fleet/mesh", params, signal);
export const fleetRollouts = (params, signal) => get(ours + "fleet/rollouts", params, signal);
export const switches = (signal) => get(ours + "switches", {}, signal);
export const matrixOfHosts = (signal) => get(ours + "matrix", {}, signal);
export const events = (params, signal) => get(ours + "events", params, signal);
export const storedDocument = (id, signal) => get(ours + "documents/" + encodeURIComponent(id), {}, signal);
export const compare = (params, signal) => get(ours + "compare", params, signal);

// queryRange and query are those of Prometheus's API.
export const queryRange = (query, start, end, step, signal) => get("api/v1/query_range", { query, start, end, step }, signal).then(data);
export const query = (question, time, signal) => get("api/v1/query", { query: question, time: time.toFixed(3) }, signal).then(data);

function data(answer) {
  if (answer.status !== "success") throw new Failure("hub", 200, answer.error ?? "no result");
  return answer.data.result;
}

// inWords returns what a failure means, and what the user can do.
export function inWords(failure) {
  switch (failure.kind) {
    case "auth": return "This browser is not logged in to the hub. Reload the page and enter the password.";
    case "refused": return "The hub refuses this browser: " + failure.message + ".";
    case "busy": return "The hub is busy or still starting, and asks the page to wait. The page retries.";
    case "away": return "The hub does not answer. The page shows the last known state and retries.";
    case "missing": return "The hub does not have this: " + failure.message + ".";
    case "bad": return "The hub rejects this request: " + failure.message + ".";
    default: return "The hub failed: " + failure.message + ".";
  }
}
