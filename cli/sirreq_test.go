package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// curl posts a document as a person does, and returns the status and the answer.
func (s *served) curl(t *testing.T, path, document string) (status, answer string) {
	t.Helper()
	c := exec.Command("curl", "-s", "-w", "%{stderr}%{http_code}", "--unix-socket", s.socket, "--data-binary", "@-", "http://mirador/"+path)
	var errs strings.Builder
	c.SysProcAttr = s.cmd.SysProcAttr
	c.Stdin, c.Stderr = strings.NewReader(document), &errs
	out, err := c.Output()
	if err != nil {
		t.Error(err)
	}
	return errs.String(), string(out)
}

// badServer answers requests for resources with what is no file.
type badServer struct {
	asked, end chan struct{} // a request for /in/slow has come, and ends
}

func (b badServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch name := strings.TrimPrefix(r.URL.Path, "/in/"); name {
	case "elsewhere":
		http.Redirect(w, r, "http://example.org/a", http.StatusFound)
	case "local":
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	case "around":
		http.Redirect(w, r, "/in/around", http.StatusFound)
	case "slow":
		b.asked <- struct{}{}
		<-b.end
	case "text":
		fmt.Fprint(w, "no program")
	case "large":
		w.Write(make([]byte, mostFetched+1))
	default:
		http.NotFound(w, r)
	}
}

// mostFetched is the limit of the gateway of the test for files from servers, in bytes.
const mostFetched = 1 << 20

// refusals sees the errors of a sirreq with curl. Not among them are limits of the time of servers, and of the memory of all applications'
// woven sources, and names of servers that lead to this machine: the tests of fetch, probes and allowed see these.
func refusals(t *testing.T, s *served, web, ftp string, slow badServer, folder string) {
	write := func(name, text string, size int64) {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("a.c", "int f(void) { return 1; }\n", 0)
	write("b.c", "int g(void) { return 1; }\n", 0)
	write("woven.c", "MIRADOR_WEAVING(\"0\")\n", 0)
	write("data", "no program", 0)
	write("large.c", "", 17<<20)
	// What is never closed takes the parser of Java much memory, and words without meaning take the parser of C much time.
	write("less.java", "class A { int f() { return "+strings.Repeat("a<", 30_000), 0)
	long := ""
	for i := range 8 {
		name := fmt.Sprintf("long%d.c", i)
		write(name, strings.Repeat("x ", 100_000), 0)
		long += in("file://" + folder + "/" + name)
	}
	total := ""
	for i := range 5 {
		name := fmt.Sprintf("large%d.c", i)
		write(name, "", 15<<20)
		total += in("file://" + folder + "/" + name)
	}
	for path, to := range map[string]string{"renamed.c": "data", "loop.c": "loop.c"} {
		if err := os.Symlink(to, filepath.Join(folder, path)); err != nil {
			t.Fatal(err)
		}
	}
	file := "file://" + folder + "/"
	out := func(source, to string) string { return `<resource in="` + source + `" out="` + to + `"/>` }
	for request, want := range map[string]string{
		"":                                        "400 &lt;resource&gt; is missing inside",
		"<resource/>":                             "400 &lt;resource&gt; has no in",
		in(""):                                    "400 in of &lt;resource&gt; is empty",
		in("gopher://example.org/a"):              "403 file:///PATH on this machine, process:ID, http, https and ftp are known",
		in("file://example.org/a"):                "403 file:///PATH on this machine, process:ID, http, https and ftp are known",
		in("http://%zz/a"):                        "400 a URI was expected",
		in("http://a b/c"):                        "400 cannot read the resource",
		in("process:p_99"):                        "404 cannot open the resource process:p_99",
		in("file:///etc/passwd"):                  "403 it is no program or library of the application",
		in(file + "none"):                         "422 no such file",
		in(file + "data"):                         "422 cannot read the structure of " + folder + "/data",
		in(file + "none.c"):                       "404 there is no such file",
		in(file + "loop.c"):                       "403 too many levels of symbolic links",
		in("file:///dev/null/a.c"):                "403 not a directory",
		in(file + "renamed.c"):                    "422 its name does not tell a language that is understood",
		in(file + "large.c"):                      "422 it has more than 16 MB",
		total:                                     "422 the sources of a request have more than 64 MB",
		in("https://example.org/a"):               "403 mirador serve --resources https://example.org/",
		in(web + "/in/none"):                      "422 the server answered 404 Not Found",
		in(web + "/in/elsewhere"):                 "422 the server redirects to http://example.org/a: the gateway fetches from servers only what",
		in(web + "/in/local"):                     "422 the server redirects to file:///etc/passwd",
		in(web + "/in/around"):                    "422 the server redirects more than 5 times",
		in("http://127.0.0.1:1/"):                 "422 the URL does not end with the name of a file",
		in(web+"/in/text") + in(ftp+"text"):       "422 another resource of the request has the name text too",
		in(web + "/in/text"):                      "422 cannot read the structure of",
		in(web + "/in/large"):                     "422 the files of the request have more than 1048576 bytes, the limit of this gateway (serve --fetch-bytes)",
		long:                                      "422 reading it takes more than 1s of CPU time, the limit of this gateway (serve --parser-time): split the file, or leave it out",
		in(file+"a.c") + in(file+"less.java"):     "422 cannot read the structure of " + file + "less.java: reading it needs more than 256 MB of memory, the limit of this gateway (serve --parser-bytes)",
		strings.Repeat(in("file:///a.c"), 10_001): "422 a request has at most 10000 sources",
		out(file+"a.c", "file:///proc/a.c"):       "403 cannot write woven sources: cannot write /proc/a.c",
		in(strings.Replace(ftp, "//", "//user:secret@", 1) + "a"): "422 xxxxx@",
		in(ftp + "none"):                                                     "422 the server answered 550",
		in("http://127.0.0.1:1/in/a"):                                        "422 connection refused",
		out("file:///bin/true", "file:///tmp/true"):                          "422 programs are measured as they run",
		out("process:p_1", "file:///tmp/p_1"):                                "422 programs are measured as they run",
		out(file+"woven.c", file+"out.c"):                                    "422 has woven regions already",
		out(file+"a.c", file+"b.c") + in(file+"b.c"):                         "400 b.c is another resource of the request",
		out(file+"a.c", file+"out.c") + out(file+"b.c", file+"out.c"):        "400 two resources are to be written to",
		out(file+"a.c", "http://example.org/a.c"):                            "403 cannot write woven sources",
		out(file+"a.c", file+"out.c?keep=2"):                                 "403 is no file: write file:///directory/name",
		out(file+"a.c", "file:///etc/mirador-out.c") + in(file+"no-other.c"): "404 there is no such file",
	} {
		status, answer := s.curl(t, "apps/tally/mir", "<sirreq>"+request+"</sirreq>")
		if code, text, _ := strings.Cut(want, " "); status != code || !strings.Contains(answer, text) {
			t.Errorf("%.1000s: %s %.1000s, want %s", request, status, answer, want)
		}
	}
	together := in(file+"none.c") + in("gopher://example.org/a") + in(web+"/in/none") + in("process:p_99")
	status, answer := s.curl(t, "apps/tally/mir", "<sirreq>"+together+"</sirreq>")
	for _, part := range []string{"there is no such file", "http, https and ftp are known", "answered 404", "no process p_99"} {
		if status < "400" || !strings.Contains(answer, part) {
			t.Errorf("%s is missing in %s %s", part, status, answer)
		}
	}
	if status, answer := s.curl(t, "apps/none/mir", "<sirreq>"+in("process:p_1")+"</sirreq>"); status != "404" || !strings.Contains(answer, `there is no application "none"`) {
		t.Error(status, answer)
	}
	his := *s
	his.cmd = &exec.Cmd{SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}}
	if status, answer := his.curl(t, "apps", `{"name": "his"}`); status != "201" {
		t.Error(status, answer)
	}
	if status, answer := his.curl(t, "apps/his/mir", "<sirreq>"+out(file+"a.c", file+"his.c")+"</sirreq>"); status != "403" || !strings.Contains(answer, "cannot write "+folder+"/his.c: permission denied") {
		t.Error(status, answer)
	}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() { s.curl(t, "apps/tally/mir", "<sirreq>"+in(web+"/in/slow")+"</sirreq>") })
		<-slow.asked
	}
	if status, answer := s.curl(t, "apps/tally/mir", "<sirreq>"+in(web+"/in/text")+"</sirreq>"); status != "503" || !strings.Contains(answer, "resources of 4 requests are being fetched") {
		t.Error(status, answer)
	}
	close(slow.end)
	waiting.Wait()
}

func in(uri string) string { return `<resource in="` + uri + `"/>` }
