// Package debuginfod fetches the separate debug files of programs by build id, from the
// servers in the environment variable DEBUGINFOD_URLS, as debuggers do. It stores them in the
// directory layout of debuginfod's own client, so that both share them.
//
// The command line connects it to sir/binary, which reads the files. A Client may be used by
// several goroutines; the package starts none.
package debuginfod

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"mirador/sir/binary"
)

const (
	// defaultTimeout is how long a server may send nothing, as in debuginfod's client.
	// DEBUGINFOD_TIMEOUT changes it.
	defaultTimeout = 10 * time.Second

	// mostBytes limits the size of a file from a server. DEBUGINFOD_MAXSIZE lowers it.
	mostBytes = 2 << 30

	// mostMissing limits the number of remembered build ids that no server has.
	mostMissing = 10_000
)

// Client is a binary.DebugFiles that asks servers for files that are not on this machine.
type Client struct {
	local   binary.DebugFiles
	servers []string
	folder  string
	timeout time.Duration
	most    int64

	mu      sync.Mutex      // also held while a file is fetched, so that it is fetched once
	missing map[string]bool // build ids that no server has
}

var _ binary.DebugFiles = (*Client)(nil)

// New returns a Client that searches local first. env reads the environment; without
// DEBUGINFOD_URLS the Client asks no server.
func New(local binary.DebugFiles, env func(string) string) *Client {
	c := &Client{local: local, timeout: defaultTimeout, most: mostBytes, folder: folder(env), missing: make(map[string]bool)}
	for _, server := range strings.Fields(env("DEBUGINFOD_URLS")) {
		if u, err := url.Parse(server); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			c.servers = append(c.servers, strings.TrimSuffix(server, "/"))
		}
	}
	if s, err := strconv.Atoi(env("DEBUGINFOD_TIMEOUT")); err == nil && s > 0 {
		c.timeout = time.Duration(s) * time.Second
	}
	if n, err := strconv.ParseInt(env("DEBUGINFOD_MAXSIZE"), 10, 64); err == nil && n > 0 {
		c.most = min(n, mostBytes)
	}
	return c
}

// folder returns the directory of debuginfod's client, "" if the environment names none.
func folder(env func(string) string) string {
	if dir := env("DEBUGINFOD_CACHE_PATH"); dir != "" {
		return dir
	}
	cache := env("XDG_CACHE_HOME")
	if cache == "" && env("HOME") != "" {
		cache = filepath.Join(env("HOME"), ".cache")
	}
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "debuginfod_client")
}

// Open opens the debug file of a build id, from this machine or else from the first server
// that has it.
func (c *Client) Open(buildID string) (*os.File, error) {
	f, err := c.local.Open(buildID)
	if err == nil || len(c.servers) == 0 || c.folder == "" {
		return f, err
	}
	if _, err := hex.DecodeString(buildID); err != nil { // it becomes a part of paths
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	path := filepath.Join(c.folder, buildID, "debuginfo")
	if f, err := os.Open(path); err == nil {
		return f, nil
	}
	if c.missing[buildID] {
		return nil, fs.ErrNotExist
	}
	if err := c.fetch(buildID, path); err != nil {
		if len(c.missing) < mostMissing {
			c.missing[buildID] = true
		}
		return nil, err
	}
	return os.Open(path)
}

// fetch stores the debug file of a build id from the first server that has it.
func (c *Client) fetch(buildID, path string) error {
	var errs []error
	for _, server := range c.servers {
		err := c.fetchFrom(server+"/buildid/"+buildID+"/debuginfo", path)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Client) fetchFrom(address, path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	idle := time.AfterFunc(c.timeout, cancel)
	defer idle.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot fetch debug information: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot fetch debug information: %s answers %s", address, response.Status)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "debuginfo.*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename
	body := &idleReader{r: response.Body, idle: idle, timeout: c.timeout}
	n, err := io.Copy(file, io.LimitReader(body, c.most+1))
	if err == nil && n > c.most {
		err = fmt.Errorf("cannot fetch debug information: %s has more than %d bytes", address, c.most)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// idleReader restarts the timeout whenever it reads data.
type idleReader struct {
	r       io.Reader
	idle    *time.Timer
	timeout time.Duration
}

func (a *idleReader) Read(b []byte) (int, error) {
	n, err := a.r.Read(b)
	if n > 0 {
		a.idle.Reset(a.timeout)
	}
	return n, err
}
