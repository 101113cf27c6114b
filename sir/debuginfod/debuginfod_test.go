package debuginfod_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mirador/sir/binary"
	"mirador/sir/debuginfod"
)

const id = "135afc8c6d1b9e02356cce218bf0109c3687ad9f"

// client returns a client of one server, with a directory of its own.
func client(t *testing.T, answer http.HandlerFunc, more ...string) *debuginfod.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	env := map[string]string{"DEBUGINFOD_URLS": "ftp://nowhere " + server.URL + "/", "DEBUGINFOD_CACHE_PATH": t.TempDir()}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		env[name] = value
	}
	return debuginfod.New(binary.DebugDir(t.TempDir()), func(name string) string { return env[name] })
}

func text(t *testing.T, f *os.File) string {
	t.Helper()
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFetchedOnce checks that the client asks a server once for a file, whether the server has
// it or not.
func TestFetchedOnce(t *testing.T) {
	var asked atomic.Int32
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/buildid/"+id+"/debuginfo" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, "symbols")
	})
	for range 2 {
		f, err := c.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, f); got != "symbols" {
			t.Errorf("the file has %q", got)
		}
	}
	for range 2 {
		if _, err := c.Open("ab" + id); err == nil {
			t.Error("opened a file that no server has")
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// TestHostile checks build ids that are not hexadecimal, which would become parts of paths,
// and servers that send too much or nothing.
func TestHostile(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") })
	if _, err := c.Open("../../etc/passwd"); err == nil {
		t.Error("opened a path that is not a build id")
	}
	c = client(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "too much") }, "DEBUGINFOD_MAXSIZE=7")
	if _, err := c.Open(id); err == nil || !strings.Contains(err.Error(), "more than 7 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
	release := make(chan struct{})
	c = client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	}, "DEBUGINFOD_TIMEOUT=1")
	defer close(release)
	begin := time.Now()
	if _, err := c.Open(id); err == nil || time.Since(begin) > 20*time.Second {
		t.Errorf("a server that sends nothing: %v after %v", err, time.Since(begin))
	}
}

// TestNoServer checks that the client sends no request if the environment names no server.
func TestNoServer(t *testing.T) {
	c := debuginfod.New(binary.DebugDir(t.TempDir()), func(string) string { return "" })
	if _, err := c.Open(id); !os.IsNotExist(err) && err != fs.ErrNotExist {
		t.Errorf("Open: %v", err)
	}
}
