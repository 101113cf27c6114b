package deliver

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/mir/allowed"
)

// Address is the destination of a request: a URI (MIR 4).
type Address struct {
	URI string
	url *url.URL
}

// ParseAddress reads a destination: an absolute file:///path or unix:///path, or an http or
// https URL. A file may have the query parameters max-size, max-age, keep and sync.
func ParseAddress(uri string) (Address, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return Address{}, fmt.Errorf("%q is no URI: %w", uri, err)
	}
	a := Address{URI: uri, url: u}
	switch u.Scheme {
	case "file", "unix":
		if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) || filepath.Clean(u.Path) != u.Path || strings.ContainsRune(u.Path, 0) {
			return Address{}, fmt.Errorf("%q names no file of this machine: write %s:///directory/name, an absolute path without the parts . and .. in it", uri, u.Scheme)
		}
		if u.Scheme == "file" {
			_, err = readRotation(u.Query())
		} else if u.RawQuery != "" {
			err = fmt.Errorf("a socket has no parameters, but %q has some", uri)
		}
	case "http", "https":
		if u.Host == "" || u.User != nil {
			err = fmt.Errorf("%q names no server: write %s://host/path, without a user", uri, u.Scheme)
		}
	default:
		err = fmt.Errorf("%q has no scheme that measurements can be delivered to: file, unix, http and https are known; without a destination they go to the probe's stream", uri)
	}
	return a, err
}

// rotation says when a file is replaced by an empty one, and how many old ones are kept.
type rotation struct {
	size int64         // bytes; 0: any
	age  time.Duration // 0: any
	keep int
	sync bool // write documents to the disk before others follow
}

// readRotation reads the query parameters of a file.
func readRotation(q url.Values) (r rotation, err error) {
	r.keep = 1
	for name := range q {
		value := q.Get(name)
		switch name {
		case "max-size":
			r.size, err = readSize(value)
		case "max-age":
			if r.age, err = time.ParseDuration(value); err == nil && r.age < time.Second {
				err = fmt.Errorf("max-age is %s, less than a second", value)
			}
		case "keep":
			if r.keep, err = strconv.Atoi(value); err == nil && (r.keep < 1 || r.keep > 100) {
				err = fmt.Errorf("keep is %s; from 1 to 100 old files can be kept", value)
			}
		case "sync":
			r.sync, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("a file has no parameter %q; max-size, max-age, keep and sync are known", name)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// readSize reads a number of bytes with an optional unit, such as 10M.
func readSize(text string) (int64, error) {
	digits, unit := strings.TrimRight(text, "kMG"), int64(1)
	switch text[len(digits):] {
	case "":
	case "k":
		unit = 1 << 10
	case "M":
		unit = 1 << 20
	case "G":
		unit = 1 << 30
	default:
		digits = ""
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("max-size is %q; a size such as 500k, 10M or 1G was expected", text)
	}
	return n * unit, nil
}

// Rules are the destinations that a configuration allows: URIs of which a destination must
// be one, or lie below one.
type Rules []string

// AnyFile is the rule for all files, AnySocket for all Unix sockets.
const (
	AnyFile   = "file:///"
	AnySocket = "unix:///"
)

// local reports whether the destination is a path of this machine.
func (a Address) local() bool { return a.url.Scheme == "file" || a.url.Scheme == "unix" }

// Check returns an error for a rule that could allow nothing.
func (rules Rules) Check() error {
	for _, rule := range rules {
		if rule == AnyFile || rule == AnySocket {
			continue
		}
		if _, err := ParseAddress(strings.TrimSuffix(rule, "/")); err != nil {
			return err
		}
	}
	return nil
}

// Allow reports whether a destination is allowed.
func (rules Rules) Allow(a Address) bool { return allowed.Below(rules, a.url) }
