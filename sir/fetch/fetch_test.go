package fetch_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/sir/fetch"
	"mirador/sir/fetch/ftpserver"
)

// start makes a folder in which all may be got but what is below /private.
func start(t *testing.T, limits fetch.Limits) *fetch.Folder {
	t.Helper()
	f, err := fetch.NewFolder(filepath.Join(t.TempDir(), "fetched"), fetch.Rules{
		URL: func(u *url.URL) error {
			if strings.HasPrefix(u.Path, "/private") {
				return errors.New("private")
			}
			return nil
		},
		Address: func(u *url.URL, address string) error {
			if u.Hostname() == "localhost" {
				return fmt.Errorf("%s may not be reached", address)
			}
			return nil
		},
	}, limits)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// got checks that a folder gets a file with a content.
func got(t *testing.T, f *fetch.Folder, uri, want string) {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	file, err := f.Get(t.Context(), u)
	if err != nil {
		t.Errorf("%s: %v", uri, err)
		return
	}
	if text, err := os.ReadFile(file); string(text) != want || filepath.Dir(file) != f.Path || filepath.Base(file) != filepath.Base(u.Path) {
		t.Errorf("%s: %s has %q, %v", uri, file, text, err)
	}
}

// refuses checks that a folder does not get a file, says why, and leaves nothing of it.
func refuses(t *testing.T, f *fetch.Folder, uri, why string) {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir(f.Path)
	if file, err := f.Get(t.Context(), u); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%s: %s, %v, want an error with %q", uri, file, err, why)
	}
	if after, err := os.ReadDir(f.Path); err != nil || len(after) != len(before) {
		t.Errorf("%s: the folder has %v, %v", uri, after, err)
	}
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]http.HandlerFunc{
		"/mmul.c":      func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "int main;") },
		"/private/x.c": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") },
		"/moved.c":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/mmul.c", http.StatusFound) },
		"/inside.c":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/private/x.c", http.StatusFound) },
		"/circle.c":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle.c", http.StatusFound) },
		"/file.c": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
		"/large.c": func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 3<<20)) },
		"/slow.c": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "int")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		mux.HandleFunc(pattern, answer)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	f := start(t, fetch.Limits{Bytes: 2 << 20, Time: time.Minute})
	got(t, f, s.URL+"/mmul.c", "int main;")
	refuses(t, f, s.URL+"/mmul.c", "another resource of the request has the name mmul.c")
	got(t, f, s.URL+"/moved.c", "int main;")
	refuses(t, f, s.URL+"/private/x.c", "private")
	refuses(t, f, s.URL+"/inside.c", "redirects to "+s.URL+"/private/x.c: private")
	refuses(t, f, s.URL+"/circle.c", "redirects more than 5 times")
	refuses(t, f, s.URL+"/file.c", "redirects to file:///etc/passwd")
	refuses(t, f, s.URL+"/none.c", "404 Not Found")
	refuses(t, f, s.URL+"/", "does not end with the name of a file")
	refuses(t, f, s.URL+"/..", "does not end with the name of a file")
	refuses(t, f, s.URL+"/a%0Ab.c", "does not end with the name of a file")
	refuses(t, f, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)+"/x.c", "may not be reached")
	refuses(t, f, strings.Replace(s.URL, "//", "//user:secret@", 1)+"/none.c", "404")
	refuses(t, f, s.URL+"/large.c", "more than 2097152 bytes")
	refuses(t, f, s.URL+"/moved.d", "404")
	short := start(t, fetch.Limits{Bytes: 2 << 20, Time: 100 * time.Millisecond})
	refuses(t, short, s.URL+"/slow.c", "within 100ms")
	s.Close()
	refuses(t, f, s.URL+"/away.c", "refused")
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestFTP(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"prototypes.h": "int f(void);\r\n", "large.c": strings.Repeat("x", 3<<20)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	anyone := ftpserver.Start(t, dir)
	f := start(t, fetch.Limits{Bytes: 2 << 20, Time: time.Minute})
	got(t, f, "ftp://anonymous@"+anyone+"/prototypes.h", "int f(void);\r\n")
	refuses(t, f, "ftp://"+anyone+"/none.h", "the server answered 550 ")
	refuses(t, f, "ftp://"+anyone+"/private/x.h", "private")
	refuses(t, f, "ftp://"+strings.Replace(anyone, "127.0.0.1", "localhost", 1)+"/x.h", "may not be reached")
	refuses(t, f, "ftp://"+anyone+"/a%0D%0ADELE%20x/x.h", "CR")
	refuses(t, f, "ftp://"+anyone+"/large.c", "more than 2097152 bytes")
	known := ftpserver.Start(t, dir, "-u", "user", "-P", "secret")
	other := start(t, fetch.Limits{Bytes: 2 << 20, Time: time.Minute})
	got(t, other, "ftp://user:secret@"+known+"/prototypes.h", "int f(void);\r\n")
	refuses(t, other, "ftp://user:wrongsecret@"+known+"/a.h", "the server answered 530 ")
}

// TestHostileFTP checks that a server that says nothing, or talks for ever, costs a bounded time and
// amount of memory.
func TestHostileFTP(t *testing.T) {
	for what, serve := range map[string]func(net.Conn){
		"within 200ms": func(c net.Conn) { c.Read(make([]byte, 1)) },
		"EOF": func(c net.Conn) {
			for line := []byte("220-" + strings.Repeat("x", 4096) + "\r\n"); ; {
				if _, err := c.Write(line); err != nil {
					return
				}
			}
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					serve(c)
				}()
			}
		}()
		limits := fetch.Limits{Bytes: 1 << 20, Time: time.Minute}
		if what != "EOF" {
			limits.Time = 200 * time.Millisecond
		}
		refuses(t, start(t, limits), "ftp://"+l.Addr().String()+"/a.c", what)
	}
}
