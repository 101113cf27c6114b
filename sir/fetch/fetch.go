// Package fetch gets the files that a sirreq names on servers: http, https and ftp. The package
// imports no other one of this module.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Limits of what one Folder gets.
type Limits struct {
	Bytes int64         // of all files together
	Time  time.Duration // for all files, from making the folder to the last byte
}

// DefaultLimits are the limits of a gateway.
func DefaultLimits() Limits { return Limits{Bytes: 256 << 20, Time: 30 * time.Second} }

// Rules decide what may be got.
type Rules struct {
	// URL returns an error for a URL that must not be got: that of a request, or one that a server
	// redirects to.
	URL func(*url.URL) error
	// Address returns an error for an address that a server of a URL has and must not be reached.
	Address func(u *url.URL, address string) error
}

// Folder has the files of one request. They keep their names, so that one can include another.
type Folder struct {
	Path   string
	rules  Rules
	left   int64
	limits Limits
	until  time.Time
}

// NewFolder makes a folder in a directory; "" is that of temporary files.
func NewFolder(dir string, rules Rules, limits Limits) (*Folder, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	made, err := os.MkdirTemp(dir, "mirador-")
	if err != nil {
		return nil, err
	}
	return &Folder{made, rules, limits.Bytes, limits, time.Now().Add(limits.Time)}, nil
}

// Remove deletes the folder and its files.
func (f *Folder) Remove() error { return os.RemoveAll(f.Path) }

// CanGet reports whether a scheme is one that Get knows.
func CanGet(scheme string) bool { return scheme == "http" || scheme == "https" || scheme == "ftp" }

// Get writes the file of a URL into the folder, and returns its path.
func (f *Folder) Get(ctx context.Context, u *url.URL) (string, error) {
	if err := f.rules.URL(u); err != nil {
		return "", err
	}
	name, err := nameOf(u)
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(filepath.Join(f.Path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("another resource of the request has the name %s too", name)
	} else if err != nil {
		return "", err
	}
	ctx, cancel := context.WithDeadlineCause(ctx, f.until, fmt.Errorf("the servers have not sent the files of the request within %s, the limit of this gateway (serve --fetch-time)", f.limits.Time))
	defer cancel()
	get := f.getHTTP
	if u.Scheme == "ftp" {
		get = f.getFTP
	}
	if err = errors.Join(get(ctx, u, file), file.Close()); err != nil {
		os.Remove(file.Name())
		return "", explain(ctx, err)
	}
	return file.Name(), nil
}

// nameOf returns the name of a file.
func nameOf(u *url.URL) (string, error) {
	const longest = 200 // bytes; with what a reader appends it must remain a name
	name := path.Base(u.Path)
	if name == "/" || name == "." || name == ".." || len(name) > longest || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("the URL does not end with the name of a file")
	}
	return name, nil
}

// explain returns an error without the password of a URL, and says if the time was over.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// copy writes what a server sends, as far as the folder has room.
func (f *Folder) copy(to io.Writer, from io.Reader) error {
	n, err := io.Copy(to, io.LimitReader(from, f.left+1))
	if f.left -= n; f.left < 0 {
		f.left = 0
		return fmt.Errorf("the files of the request have more than %d bytes, the limit of this gateway (serve --fetch-bytes)", f.limits.Bytes)
	}
	return err
}

// dialer returns what connects to servers of a URL.
func (f *Folder) dialer(u *url.URL) *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return f.rules.Address(u, address) }}
}
