// The fragment of an address never reaches a server: the form adds it to its action, and the browser keeps it across the redirect.
document.forms[0].action += location.hash;
