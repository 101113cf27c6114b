// Package owned opens directories and files that nobody but this process's user, and
// root, can change: what a gateway reads from its data directory decides what it does
// with root's privileges.
//
// A directory is checked from the root of the file system down. A component that another
// user owns or can replace is refused, so that the path leads to the same place after the
// check. Files are opened without following a symbolic link.
//
// It imports nothing of ours. http, probes/journal, omis/linux, omis/place/calibrate and
// cli import it. Its functions may be called from any goroutine.
package owned
