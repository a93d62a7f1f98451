// Package web is the frame of the hub's web server: it decides which clients it serves, from where,
// and how much at once. It does not know the content.
//
// # Model
//
// [Listen] binds an address and [Server.Serve] serves a handler behind the frame. On the loopback
// address a server may be open to every account of the host. On any other address it requires a
// password or client certificates, and uses TLS, with a configured certificate or with one that it
// makes once.
//
// The frame checks each request in this order: the method, the host name (against DNS rebinding),
// the site that sent it, the path, the password or certificate, and a place among the requests at
// once. Only then the handler gets it, with a bounded body. A refused request takes no place and
// costs no query. A panic of the handler becomes an answer 500 and a line in the log.
//
// Browsers get a form and a session cookie; programs (Grafana, curl) send the password with each
// request (Basic). The password is on disk as a PBKDF2 hash. Wrong passwords delay their address.
//
// # Units
//
// Sizes are bytes.
//
// # Sources
//
// RFC 9110 (HTTP), RFC 7617 (Basic), RFC 6265bis (cookies), RFC 8018 (PBKDF2) with the number of
// iterations that OWASP recommended in 2023, W3C Fetch Metadata, Content Security Policy level 3.
//
// # Limits
//
// Sessions are in memory: a restart ends them. The server has one password and no user names.
// Without a password, every account that can connect to the loopback address may read everything.
package web
