// Package owned opens directories and files that only this process's user and root can
// change: the contents of a gateway's data directory decide what it does with root's
// privileges.
//
// The package checks a directory from the root of the file system down. It rejects a
// component that another user owns or can replace, so that the path leads to the same
// place after the check. It opens files without following a symbolic link.
//
// It imports nothing of this module. http, probes/journal, omis/linux,
// omis/place/calibrate and cli import it. Its functions may be called from any goroutine.
package owned
