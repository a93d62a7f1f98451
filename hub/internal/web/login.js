// A link on another site brings no session cookie. If this browser has a session, go on to the page with it.
const form = document.forms[0];
if (/(^|; )linerate_login=/.test(document.cookie) && !document.querySelector("[role=alert]").textContent) {
  fetch("/api/linerate/v1/status").then((answer) => {
    if (answer.ok) location.replace(form.next.value + location.hash);
  });
}
// The fragment of an address never reaches a server: the form adds it to its action, and the browser keeps it across the redirect.
form.action += location.hash;
