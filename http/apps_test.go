package gateway

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// serveAs sends one request to a server as a caller.
func serveAs(t *testing.T, s *Server, c *Caller, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(withCaller(r.Context(), c)))
	conforms(t, r, body, w)
	return w
}

func TestListAppsShowsWhatTheCallerMayTouch(t *testing.T) {
	expect(t, ask(t, one(), owner, "GET", "/apps", ""), 200, `"mmul"`)
	if w := ask(t, one(), other, "GET", "/apps", ""); strings.TrimSpace(w.Body.String()) != "[]" {
		t.Errorf("another user sees %s", w.Body)
	}
	if w := ask(t, &scripted{}, root, "GET", "/apps", ""); strings.TrimSpace(w.Body.String()) != "[]" {
		t.Errorf("without applications the list is %s", w.Body)
	}
	expect(t, ask(t, one(), owner, "GET", "/apps/mmul", ""), 200, `"p_1"`)
	expect(t, ask(t, one(), other, "GET", "/apps/mmul", ""), 403, "uid 1000")
	expect(t, ask(t, one(), root, "GET", "/apps/nix", ""), 404, "mmul")
	expect(t, ask(t, one(), root, "GET", fmt.Sprint("/apps/", noPID), ""), 404, fmt.Sprintf("; process %d is of the application mmul", noPID))
	expect(t, ask(t, one(), root, "GET", "/apps/4711", ""), 404, "mirador attach 4711")
	expect(t, ask(t, one(), owner, "GET", "/apps/%6dm%75l", ""), 200, `"p_1"`)
	expect(t, ask(t, one(), owner, "GET", "/apps/a%2Fb%20c", ""), 404, "a/b c")
	expect(t, ask(t, one(), other, "GET", "/probes/probe-1", ""), 403)
	expect(t, ask(t, one(), owner, "GET", "/probes/probe-1", ""), 200, `"active"`)
	expect(t, ask(t, one(), root, "GET", "/probes/nix", ""), 404, "GET /probes")
}

func TestLaunch(t *testing.T) {
	b := one()
	body := `{"launch":{"path":"/bin/sleep","args":["60"],"dir":"/tmp","stdout":"/tmp/out"}}`
	w := ask(t, b, root, "POST", "/apps", body)
	expect(t, w, 201, `"name": "sleep"`, `"p_1"`)
	if w.Header().Get("Location") != "/apps/sleep" {
		t.Errorf("Location %q", w.Header().Get("Location"))
	}
	if l := b.launched[0]; l.Path != "/bin/sleep" || l.Dir != "/tmp" || !slices.Equal(l.Args, []string{"60"}) || !slices.Equal(l.IO, []string{"", "/tmp/out", ""}) {
		t.Errorf("launched %+v", l)
	}
	expect(t, ask(t, b, other, "POST", "/apps", body), 403, "mirador attach PID")
	expect(t, ask(t, b, other, "POST", "/apps/mmul", body), 403, "uid 1000")
	control := &Caller{Name: "certificate c", Role: Control, UID: -1, All: true}
	expect(t, ask(t, b, control, "POST", "/apps", body), 403, "debug")
}

func TestPaused(t *testing.T) {
	b := one()
	body := `{"launch":{"path":"/bin/sleep"},"paused":true%s}`
	expect(t, ask(t, b, root, "POST", "/apps", fmt.Sprintf(body, "")), 201)
	expect(t, ask(t, b, root, "POST", "/apps", fmt.Sprintf(body, `,"lease":"10m"`)), 201)
	expect(t, ask(t, b, root, "POST", "/apps", `{"launch":{"path":"/bin/sleep"}}`), 201)
	if p := b.pauses; p[0].Lease != 0 || p[1].Lease != 10*time.Minute || p[2] != nil {
		t.Errorf("paused as %v", p)
	}
	expect(t, ask(t, b, owner, "POST", "/apps/mmul/continue", ""), 200, `"running"`)
	expect(t, ask(t, b, other, "POST", "/apps/mmul/continue", ""), 403, "uid 1000")
	expect(t, ask(t, b, &Caller{Name: "certificate c", Role: Read, UID: -1, All: true}, "POST", "/apps/mmul/continue", ""), 403, "control")
	expect(t, ask(t, b, root, "POST", "/apps/nix/continue", ""), 404)
	expect(t, ask(t, b, &Caller{Name: "certificate c", Role: Control, UID: -1, All: true}, "POST", "/apps", fmt.Sprintf(body, "")), 403, "debug")
	if !slices.Equal(b.continued, []string{"mmul"}) {
		t.Errorf("continued %q", b.continued)
	}
}

func TestInvalidAppRequests(t *testing.T) {
	for body, words := range map[string]string{
		``:                              "EOF",
		`{}`:                            "neither",
		`{"launch":{"path":"sleep"}}`:   "absolute",
		`{"attach":[1],"nix":1}`:        "nix",
		`{"attach":[1]} {}`:             "follows",
		`{"name":"a b","attach":[1]}`:   "letters",
		`{"name":"../x","attach":[1]}`:  "letters",
		`{"name":"other","attach":[1]}`: "path says",
		`{"attach":["1"]}`:              "cannot read",
		`{"attach":[1],"alone":true,"follow":true}`:            "contradict",
		`{"launch":{"path":"/bin/a b"}}`:                       "letters",
		`{"attach":[1],"paused":true}`:                         "has begun already",
		`{"attach":[1],"lease":"1m"}`:                          "started with",
		`{"launch":{"path":"/x"},"paused":true,"lease":"-1m"}`: "no duration",
		`{"name":"` + strings.Repeat("x", 65):                  "unexpected",
	} {
		target := "/apps"
		if strings.Contains(body, "other") {
			target = "/apps/mine"
		}
		expect(t, ask(t, one(), root, "POST", target, body), 400, words)
	}
}

func TestAttachLooksAtTheOwner(t *testing.T) {
	const his, gone = 100, 4194305
	b := one()
	b.owners = map[int]int{his: nobody.UID}
	body := fmt.Sprintf(`{"attach":[%d]}`, his)
	expect(t, ask(t, b, nobody, "POST", "/apps/web", body), 201)
	expect(t, ask(t, b, other, "POST", "/apps/web", body), 403, "ask that user or root")
	expect(t, ask(t, b, root, "POST", "/apps/web", fmt.Sprintf(`{"attach":[%d]}`, gone)), 404, "no process 4194305")
}

// TestApplicationsOfAUser checks that a user cannot create applications without limit, can
// extend existing ones, and limits no other user.
func TestApplicationsOfAUser(t *testing.T) {
	const process, most = 100, 64
	b := &scripted{owners: map[int]int{process: other.UID}}
	for n := range most {
		b.apps = append(b.apps, App{Name: fmt.Sprint("app-", n), Owner: other.UID})
	}
	body := fmt.Sprintf(`{"attach":[%d]}`, process)
	expect(t, ask(t, b, other, "POST", "/apps/new", body), 429, "has 64 applications")
	expect(t, ask(t, b, other, "POST", "/apps", body), 429)
	expect(t, ask(t, b, other, "POST", "/apps/app-7", body), 201)
	expect(t, ask(t, b, root, "POST", "/apps/new", body), 201)
	b.apps = b.apps[1:]
	expect(t, ask(t, b, other, "POST", "/apps/new", body), 201)
}

// TestAttachForked checks that the descendants of a process are attached with it, except those that
// the caller may not touch, and unless the request asks for the process alone.
func TestAttachForked(t *testing.T) {
	const parent, own, foreign, gone = 100, 101, 102, 103
	me := &Caller{Name: "me", Role: Debug, UID: 1001}
	for _, c := range []struct {
		caller *Caller
		body   string
		want   []int
	}{
		{root, `{"attach":[%d]}`, []int{parent, own, foreign}},
		{me, `{"attach":[%d]}`, []int{parent, own}},
		{root, `{"attach":[%d],"alone":true}`, []int{parent}},
	} {
		b := one()
		b.forked = map[int][]int{parent: {gone, own, foreign}}
		b.owners = map[int]int{parent: me.UID, own: me.UID, foreign: nobody.UID}
		expect(t, ask(t, b, c.caller, "POST", "/apps/web", fmt.Sprintf(c.body, parent)), 201)
		if follow := len(c.want) > 1; follow != (len(b.followed) > 0) {
			t.Errorf("%s as %s: follows forks: %t, want %t", c.body, c.caller.Name, !follow, follow)
		}
		if !slices.Equal(b.attached, c.want) {
			t.Errorf("%s as %s: attached %d, want %d", c.body, c.caller.Name, b.attached, c.want)
		}
	}
}

var nobody = &Caller{Name: "uid 65534", Role: Debug, UID: 65534}

// TestProcessOfAnotherUser checks that a user may not touch a process that belongs to another user
// now, even if it was attached before.
func TestProcessOfAnotherUser(t *testing.T) {
	const pid = 100
	b := one()
	b.owners = map[int]int{pid: 0}
	b.apps = []App{{Name: "mmul", Owner: 65534, Processes: []Process{{Token: "p_1", PID: pid}}}}
	expect(t, ask(t, b, nobody, "POST", "/apps/web", fmt.Sprintf(`{"attach":[%d]}`, pid)), 403, "ask that user or root")
	expect(t, ask(t, b, nobody, "POST", "/apps/mmul/mir", "<snapshotreq/>"), 403, "another identity")
	expect(t, ask(t, b, nobody, "POST", "/mir", "<snapshotreq/>"), 404)
	expect(t, ask(t, b, nobody, "GET", "/probes/probe-1", ""), 403)
	expect(t, ask(t, b, root, "GET", "/apps/mmul", ""), 200)
	b.apps[0].Processes[0].Gone = true
	expect(t, ask(t, b, nobody, "GET", "/apps/mmul", ""), 200)
}

func TestRelease(t *testing.T) {
	b := one()
	b.apps = append(b.apps, App{Name: "web", Owner: 1001})
	expect(t, ask(t, b, root, "DELETE", "/apps/mmul?kill=true", ""), 204)
	expect(t, ask(t, b, other, "DELETE", "/apps/mmul", ""), 403)
	expect(t, ask(t, b, other, "DELETE", "/apps", ""), 204)
	if want := []string{"mmul and kill", "web"}; !slices.Equal(b.released, want) {
		t.Errorf("released %q, want %q", b.released, want)
	}
}

// TestPartOfStructure checks that a client can ask for the units that a shell may complete.
func TestPartOfStructure(t *testing.T) {
	w := ask(t, one(), root, "GET", "/apps/mmul/sir?prefix=one:f&most=5", "")
	expect(t, w, 200, `<unit id="one:f"`)
	if tag := w.Header().Get("ETag"); tag == `"tag1"` || tag == "" {
		t.Errorf("a part has the tag %s", tag)
	}
	if w := ask(t, one(), root, "GET", "/apps/mmul/sir?prefix=one:x", ""); w.Code != 200 || strings.Contains(w.Body.String(), "<unit") {
		t.Errorf("no unit fits: %d %s", w.Code, w.Body)
	}
	for _, bad := range []string{"0", "-1", "1001", "x"} {
		expect(t, ask(t, one(), root, "GET", "/apps/mmul/sir?most="+bad, ""), 400, "no number of units")
	}
}

// TestRegionsOfStructure checks the parameters for regions inside functions, and that each part has
// a tag of its own.
func TestRegionsOfStructure(t *testing.T) {
	tags := map[string]string{}
	for query, want := range map[string]string{
		"depth=1":                                "one:f",
		"depth=2":                                "one:f one:f/loop1",
		"depth=3":                                "one:f one:f/loop1 one:f/loop1/body",
		"depth=3&grep=loop1$":                    "one:f one:f/loop1",
		"depth=3&grep=^body$":                    "one:f one:f/loop1 one:f/loop1/body",
		"grep=nothing":                           "",
		"depth=9&prefix=one:f/loop1/&most=5":     "one:f/loop1/body",
		"depth=9&prefix=one:g/loop1/&most=5":     "",
		"depth=2&prefix=one:f/l&most=1&grep=%2F": "one:f/loop1",
	} {
		w := ask(t, one(), root, "GET", "/apps/mmul/sir?"+query, "")
		expect(t, w, 200, "<program")
		var ids []string
		for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1) {
			ids = append(ids, m[1])
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		tag := w.Header().Get("ETag")
		if other, ok := tags[tag]; ok {
			t.Errorf("%s and %s have the same tag %s", query, other, tag)
		}
		tags[tag] = query
	}
	for query, has := range map[string]bool{
		"depth=2": false, "depth=2&grep=f": true, "depth=2&prefix=one": true, "depth=2&prefix=one&most=5": false, "grep=f": false,
		"depth=2&placements=true": true, "placements=true": true, "depth=2&grep=f&placements=false": false,
	} {
		w := ask(t, one(), root, "GET", "/apps/mmul/sir?"+query, "")
		if got := strings.Contains(w.Body.String(), `placements="trap"`); w.Code != 200 || got != has {
			t.Errorf("%s: there are placements: %t", query, got)
		}
	}
	for query, why := range map[string]string{"placements=x": "true or false", "depth=0": "no depth", "depth=x": "no depth", "depth=2000": "no depth", "grep=(": "no regular expression", "grep=" + strings.Repeat("x", 1001): "longer than"} {
		expect(t, ask(t, one(), root, "GET", "/apps/mmul/sir?"+query, ""), 400, why)
	}
}

func TestStructure(t *testing.T) {
	w := ask(t, one(), root, "GET", "/apps/mmul/sir", "")
	expect(t, w, 200, `<unit id="one:f"`)
	tag := w.Header().Get("ETag")
	for header, status := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
		if w := ask(t, one(), root, "GET", "/apps/mmul/sir", "", "If-None-Match", header); w.Code != status {
			t.Errorf("%s: status %d, want %d", header, w.Code, status)
		}
	}
	// The regions inside functions are not looked for when the client has them.
	b := one()
	tag = ask(t, b, root, "GET", "/apps/mmul/sir?depth=2", "").Header().Get("ETag")
	w = ask(t, b, root, "GET", "/apps/mmul/sir?depth=2", "", "If-None-Match", tag)
	if w.Code != 304 || w.Header().Get("ETag") != tag || w.Body.Len() > 0 || b.insides != 1 {
		t.Errorf("status %d, %d bytes, looked inside %d times", w.Code, w.Body.Len(), b.insides)
	}
	if w := ask(t, b, root, "GET", "/apps/mmul/sir?depth=3", "", "If-None-Match", tag); w.Code != 200 || b.insides != 2 {
		t.Errorf("another part: status %d, looked inside %d times", w.Code, b.insides)
	}
}

func TestResources(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(dir, link), os.WriteFile(filepath.Join(dir, "y"), nil, 0o644), os.Symlink("/etc/passwd", filepath.Join(dir, "z"))); err != nil {
		t.Fatal(err)
	}
	s := newTestServer(one())
	s.resources = []string{dir, link, "http://allowed.example/in"}
	// The answer has all errors, with their positions.
	expect(t, serveAs(t, s, root, "POST", "/mir", "<sirreq>\n<resource in='http://a/b.c'/><resource in='file:///bin/one' out='file:///c'/></sirreq>"), 403,
		"<error>line 2, column 1: cannot open the resource http://a/b.c", "<error>line 2, column 30: cannot write file:///c")
	expect(t, serveAs(t, s, root, "POST", "/mir", "<sirreq><resource in='file://"+dir+"/damaged'/>\n<resource in='process:p_1'/>\n<resource in='process:7'/></sirreq>"), 422,
		"column 9: the resource file://"+dir+"/damaged: not a program", "line 3, column 1: cannot open the resource process:7: application mmul has no process 7")
	for resource, want := range map[string]struct {
		status int
		words  string
	}{
		`in="process:p_1"`:                           {200, "one:f"},
		`in="process:p_2"`:                           {404, "no process p_2"},
		`in="file:///bin/one"`:                       {200, "one:f"},
		`in="file://localhost/bin/one"`:              {200, "one:f"},
		`in="file://` + dir + `/x"`:                  {200, dir + "/x"},
		`in="file://` + link + `/y"`:                 {200, dir + "/y"},
		`in="file://` + link + `/z"`:                 {403, "cannot open"},
		`in="file://` + dir + `/../x"`:               {403, "cannot open"},
		`in="file:///etc/shadow"`:                    {403, "/bin/one"},
		`in="http://example.org/a.c"`:                {403, "mirador serve --resources http://example.org/"},
		`in="ftp://example.org/a.c"`:                 {403, "mirador serve --resources ftp://example.org/"},
		`in="gopher://example.org/a.c"`:              {403, "http, https and ftp are known"},
		`in="http://allowed.example/in/../a.c"`:      {403, "what its configuration allows"},
		`in="http://%zz/a.c"`:                        {400, "cannot read the resource"},
		`in="ftp://user:secret@example.org/a"`:       {403, "cannot open the resource ftp://user:xxxxx@example.org/a"},
		`in="file:///bin/one" out="file:///tmp/one"`: {422, "out"},
	} {
		w := serveAs(t, s, root, "POST", "/mir", "<sirreq><resource "+resource+"/></sirreq>")
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.words) {
			t.Errorf("%s: status %d, want %d: %s", resource, w.Code, want.status, w.Body)
		}
	}
	for range mostFetching {
		s.fetching <- struct{}{}
	}
	expect(t, serveAs(t, s, root, "POST", "/mir", "<sirreq><resource in='http://allowed.example/in/a.c'/></sirreq>"), 503, "resources of 4 requests are being fetched")
}
