// Package mount makes NFS mounts of its own, moves bytes over them and takes them away.
//
// # Model
//
// A [Spec] is what a mount asks for. An [Effective] is what the kernel gave: a server has bounds,
// and an earlier mount of the same server decides how many connections there are. A [Space] is a
// mount namespace that belongs to threads of this process. Its mounts are below a tmpfs that
// no other process sees. A [Bench] measures one segment: a fresh mount, a sequential read, a
// write with fsync, the end of the mount. Around it, it reads the counters of this host.
//
// Caches. Each segment has a mount with its own superblock (nosharecache), so the client's cache is
// empty; the bytes of READ calls against those of the program prove it. The server's cache cannot
// be emptied from here. A file that exists is read region by region, each once as long as it
// lasts. A file of our own was just written and lies in the server's memory. [Sample] says which.
//
// What remains. A killed process ends its threads, they end the namespace, and the kernel unmounts
// what was in it. Files of our own on the server carry host, process and start time in their names;
// [Bench.Prepare] removes those of processes of this host that have ended.
//
// # Units
//
// Bytes, seconds, bytes per second.
//
// # Sources
//
// nfs(5), mount(2), umount(2) for MNT_FORCE, mount_namespaces(7); nfs_match_client in
// fs/nfs/client.c for shared connections; RFC 5531 for the call of [Ping].
//
// # Limits
//
// The Linux kernel's client, and root. A mount that the server answers no more ends by force:
// calls under way fail. While mount(2) itself waits for a silent server no force reaches it; the
// thread is then left, and ends with the process.
package mount
