package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/sir/fetch/ftpserver"
)

// TestResourcesFromServers checks that a sirreq gets the files that it names on servers which the
// configuration allows, and that nothing of them stays.
func TestResourcesFromServers(t *testing.T) {
	web, files := t.TempDir(), t.TempDir()
	for name, dir := range map[string]string{"tally": web, "other": files} {
		text, err := os.ReadFile(subject.Compile(t, "tally", "testdata/tally.c"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		filepath.Join(web, "mmul.c"):         "#include \"prototypes.h\"\nint work(int n) {\n\teach_row(i, n) { step(i); }\n}\n",
		filepath.Join(files, "prototypes.h"): "#define each_row(i, n) for (int i = 0; i < n; i++)\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bad := badServer{make(chan struct{}), make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(web)))
	mux.Handle("/in/", bad)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ftp := "ftp://" + ftpserver.Start(t, files) + "/"
	s := startServe(t, os.Geteuid(), "--resources", server.URL+"/tally", "--resources", server.URL+"/mmul.c", "--resources", server.URL+"/in/", "--resources", ftp, "--resources", folder, "--resources", "http://127.0.0.1:1/",
		"--longest-request", "1000000", "--fetch-bytes", strconv.Itoa(mostFetched), "--parser-bytes", strconv.Itoa(leastParserBytes), "--parser-time", "1s")
	c := startTally(t)
	s.must(t, "", "attach", strconv.Itoa(c.PID))
	reply := s.mir(t, "tally", `<sirreq><resource in="`+server.URL+`/tally"/><resource in="`+ftp+`other"/></sirreq>`)
	for _, part := range []string{`path="` + server.URL + `/tally"`, `path="` + ftp + `other"`, `id="tally:work"`, `id="other:work"`} {
		if !strings.Contains(reply, part) {
			t.Errorf("%s is missing in %s", part, reply)
		}
	}
	// The example of MIR 2: a program from the Web, and a file that it includes by ftp.
	reply = s.mir(t, "tally", `<sirreq><resource in="`+server.URL+`/mmul.c"/><resource in="`+strings.Replace(ftp, "//", "//anonymous@", 1)+`prototypes.h"/></sirreq>`)
	for _, part := range []string{`in="` + server.URL + `/mmul.c"`, `id="tally:work/loop1" type="loop" form="macro"`, `prototypes.h"`} {
		if !strings.Contains(reply, part) {
			t.Errorf("%s is missing in %s", part, reply)
		}
	}
	refused, _, status := s.mirador(t, `<sirreq><resource in="`+server.URL+`/more"/><resource in="`+ftp+`none"/></sirreq>`, "post", "--app", "tally", "-")
	for _, part := range []string{"/more: the gateway fetches from servers only what its configuration allows", "none: the server answered 550"} {
		if status == 0 || !strings.Contains(refused, part) {
			t.Errorf("%s is missing in %s, status %d", part, refused, status)
		}
	}
	refusals(t, s, server.URL, ftp, bad, folder)
	damagedPrograms(t, s)
	if left, err := os.ReadDir(filepath.Join(s.data(), "fetched")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
