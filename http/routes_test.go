package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

func TestRouterIsTheTable(t *testing.T) {
	var served, listed []string
	s := newTestServer(one())
	err := chi.Walk(s.router, func(method, pattern string, _ http.Handler, middlewares ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+pattern)
		if len(middlewares) > 0 {
			t.Errorf("%s has middleware: its work belongs in frame, which measures it", pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Routes() {
		listed = append(listed, r.Method+" "+r.Pattern)
		if r.Method == http.MethodGet {
			listed = append(listed, "HEAD "+r.Pattern)
		}
		if r.Doc == "" {
			t.Errorf("%s %s has no documentation", r.Method, r.Pattern)
		}
	}
	slices.Sort(served)
	slices.Sort(listed)
	if !slices.Equal(served, listed) {
		t.Errorf("router: %q\ntable: %q", served, listed)
	}
}

// sample replaces the parameters of a pattern by values.
var sample = strings.NewReplacer("{app}", "mmul", "{id}", "probe-1", "{tool}", "mine", "*", "mir.xsd")

func TestRolesOfRoutes(t *testing.T) {
	for _, r := range Routes() {
		w := ask(t, one(), nil, r.Method, sample.Replace(r.Pattern), "")
		if open := w.Code != http.StatusUnauthorized; open != (r.Role == Nobody) {
			t.Errorf("%s %s answers %d to a stranger, its role is %s", r.Method, r.Pattern, w.Code, r.Role)
		}
		if r.Role > Read {
			w := ask(t, one(), guest, r.Method, sample.Replace(r.Pattern), "")
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s answers %d to a reader, its role is %s", r.Method, r.Pattern, w.Code, r.Role)
			}
		}
	}
}

// TestStrangersLearnNoPaths checks that the answer to a caller without a token explains what to send,
// but contains no path of the gateway's machine.
func TestStrangersLearnNoPaths(t *testing.T) {
	w := ask(t, one(), nil, "POST", "/mir", valueRequest)
	expect(t, w, 401, "<errors>", "Authorization: Bearer TOKEN", "data directory")
	for _, path := range []string{"/", "/apps", "/schemas/none.xsd", "/nothing", "/readyz"} {
		if body := ask(t, one(), nil, "GET", path, "").Body.String(); strings.Contains(body, "/data") || strings.Contains(body, "/run/") {
			t.Errorf("GET %s: %s", path, body)
		}
	}
	if w.Header().Get("WWW-Authenticate") == "" {
		t.Error("no WWW-Authenticate")
	}
	w = ask(t, one(), nil, "GET", "/apps", "")
	expect(t, w, 401, `"status":401`)
	if w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("Content-Type %q", w.Header().Get("Content-Type"))
	}
}

func TestToken(t *testing.T) {
	for header, status := range map[string]int{
		"Bearer " + secret:       200,
		"bearer  " + secret:      200,
		"Bearer " + secret + "0": 401,
		"Bearer":                 401,
		"Basic " + secret:        401,
		"":                       401,
	} {
		if w := ask(t, one(), nil, "GET", "/apps", "", "Authorization", header); w.Code != status {
			t.Errorf("%q: status %d, want %d", header, w.Code, status)
		}
	}
}

func TestUnknownPlaces(t *testing.T) {
	expect(t, ask(t, one(), root, "GET", "/nowhere", ""), 404, "/nowhere")
	w := ask(t, one(), root, "PUT", "/apps", "")
	expect(t, w, 405, "PUT")
	if got := w.Header()["Allow"]; !slices.Equal(got, []string{"GET", "HEAD", "POST", "DELETE"}) {
		t.Errorf("Allow: %q", got)
	}
	expect(t, ask(t, one(), root, "GET", "/mir", ""), 405)
	expect(t, ask(t, one(), root, "HEAD", "/mir", ""), 405)
	expect(t, ask(t, one(), root, "HEAD", "/apps", ""), 200)
	expect(t, ask(t, one(), nil, "HEAD", "/apps", ""), 401)
}

func TestRequestIDs(t *testing.T) {
	given := ask(t, one(), root, "GET", "/healthz", "", "X-Request-Id", "abc-1")
	if id := given.Header().Get("X-Request-Id"); id != "abc-1" {
		t.Errorf("id %q, given abc-1", id)
	}
	for _, bad := range []string{"", "two words", strings.Repeat("x", 65), "ü"} {
		w := ask(t, one(), root, "GET", "/healthz", "", "X-Request-Id", bad)
		if id := w.Header().Get("X-Request-Id"); id == bad || id == "" {
			t.Errorf("id %q was taken from %q", id, bad)
		}
	}
}

func TestReadiness(t *testing.T) {
	b := one()
	expect(t, ask(t, b, nil, "GET", "/readyz", ""), 200, "ready")
	b.ready = errBroken
	expect(t, ask(t, b, nil, "GET", "/readyz", ""), 503, "broken")
	expect(t, ask(t, b, nil, "GET", "/healthz", ""), 200, "ok")
}

func TestMetrics(t *testing.T) {
	s := newTestServer(one())
	for range 3 {
		serveAs(t, s, root, "POST", "/mir", valueRequest)
	}
	w := serveAs(t, s, root, "GET", "/metrics", "")
	expect(t, w, 200,
		`mirador_http_requests_total{method="POST",route="/mir",status="2xx"} 3`,
		`mirador_http_request_seconds_count{method="POST",route="/mir"} 3`,
		"mirador_applications 1", "mirador_probes 1")
}

func TestPage(t *testing.T) {
	w := ask(t, one(), root, "GET", "/", "")
	expect(t, w, 200, "mmul", "probe-1", "curl --unix-socket /run/test.sock", "/apps/{app}/mir")
	stranger := ask(t, one(), nil, "GET", "/", "")
	expect(t, stranger, 200, "Authorization: Bearer")
	if strings.Contains(stranger.Body.String(), "mmul") {
		t.Error("a stranger sees the names of applications")
	}
}

func TestSchemas(t *testing.T) {
	expect(t, ask(t, one(), nil, "GET", "/schemas/mir.xsd", ""), 200, "<schema/>")
	w := ask(t, one(), nil, "GET", "/schemas/", "")
	expect(t, w, 200, "/schemas/mir.xsd")
	for _, name := range []string{"schemas.go", "nix.xsd", "../mir.xsd", "%2e%2e/mir.xsd"} {
		if w := ask(t, one(), nil, "GET", "/schemas/"+name, ""); w.Code != 404 {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
}

func TestTables(t *testing.T) {
	expect(t, ask(t, one(), nil, "GET", "/catalog", ""), 200, ` name="COUNT"`, "<entity>thread</entity>")
	expect(t, ask(t, one(), nil, "GET", "/catalog", "", "Accept", "application/json"), 200, `"name": "COUNT"`)
	expect(t, ask(t, one(), nil, "GET", "/omis/services", ""), 200, `<service name="version"`)
}
