package web

// ownerOf is for systems with users and groups of numbers: here nobody is root (os.Geteuid is -1),
// and a file belongs to who makes it.
func ownerOf(string) (uid, gid int, err error) { return -1, -1, nil }
