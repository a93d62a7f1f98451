// The part of an address after # never reaches a server: the form takes it along, and the browser keeps it on the way to where it was wanted.
document.forms[0].action += location.hash;
