// Package web is the frame that a web server of ours stands in: who may ask, from where, and how
// much. It knows nothing of what is told.
//
// # Model
//
// [Listen] binds an address and [Server.Serve] puts a handler behind the frame. On the loopback
// address a server may be open to whoever is on this host. On any other address it needs a password
// or certificates of clients, and speaks TLS, with the certificate that it is given or with one of
// its own, made once.
//
// Every request passes, in this order: its method, the name that it calls this server by (against
// DNS rebinding), the site it comes from, its path, the password or certificate, a place among
// those that are answered at once. Only then the handler sees it, with a bounded body. What is
// refused costs neither a place nor a query. A panic of the handler is an answer 500 and a line in
// the log.
//
// Browsers get a form and a cookie for their session; programs (Grafana, curl) send the password
// with each request (Basic). The password is on disk as a PBKDF2 hash. Wrong ones slow their
// address down.
//
// # Units
//
// Sizes are bytes.
//
// # Sources
//
// RFC 9110 (HTTP), RFC 7617 (Basic), RFC 6265bis (cookies), RFC 8018 (PBKDF2) with the count of
// iterations that OWASP asks for in 2023, W3C Fetch Metadata, Content Security Policy level 3.
//
// # Limits
//
// Sessions are in memory: a restart ends them. There is one password and no names of users. Without
// a password, whoever can open a connection to the loopback address may read everything, other
// users of this host too.
package web
