//go:build linux && amd64

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"mirador/mir/client"
)

// keptProbe is a probe that a document has requested before the test. After a kill the next gateway
// adopts it, and its value must include every call. The victim's checker uses it.
type keptProbe struct {
	gateway  *gateway
	app, id  string
	function function
	want     int64
	planted  int    // life of the gateway that planted it
	mortal   string // why it ends with its gateway, "" if it does not
}

// These find parts of the gateway's documents.
var (
	probeID   = regexp.MustCompile(`<probe id="([^"]*)"`)
	placement = regexp.MustCompile(`where="([^"]*)" why="([^"]*)"`)
	value     = regexp.MustCompile(`value="(\d+)"`)
)

// newKeptProbe attaches the victim to an application and plants the probe. It must be called before
// the gateway gets other requests.
func newKeptProbe(g *gateway, v *victim, f function) (*keptProbe, error) {
	w := &keptProbe{gateway: g, app: "kept-" + nameOfTool(v.name), function: f, planted: g.now()}
	body, err := json.Marshal(map[string]any{"name": w.app, "attach": []int{v.PID}})
	if err != nil {
		return nil, err
	}
	if _, err := w.ask(context.Background(), client.Request{Method: http.MethodPost, Path: "/apps", Type: "application/json", Body: body}); err != nil {
		return nil, err
	}
	probe, err := w.post(context.Background(), fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="%s:%s"/><metric name="COUNT"/>`+
		`<measuring><aggregate function="SUM"/></measuring></instrreq>`, filepath.Base(f.file), f.name))
	if err != nil {
		return nil, err
	}
	id := probeID.FindStringSubmatch(probe)
	if id == nil {
		return nil, fmt.Errorf("the gateway's answer is %s", probe)
	}
	w.id = id[1]
	for _, p := range placement.FindAllStringSubmatch(probe, -1) {
		if p[1] == "trap" {
			w.mortal = p[2]
		}
	}
	return w, nil
}

func (w *keptProbe) ask(ctx context.Context, r client.Request) (*client.Reply, error) {
	return w.gateway.ask(ctx, w.gateway.now(), r)
}

func (w *keptProbe) post(ctx context.Context, document string) (string, error) {
	reply, err := w.ask(ctx, client.Request{Method: http.MethodPost, Path: "/apps/" + w.app + "/mir", Type: "application/xml", Prefer: "return=representation", Body: []byte(document)})
	if err != nil {
		return "", err
	}
	return string(reply.Body), nil
}

// compare compares the probe with the true count. outlived reports that the probe has outlived a
// gateway. The document has no value if there was no call.
func (w *keptProbe) compare(ctx context.Context) (outlived bool, err error) {
	if w.mortal != "" {
		return false, nil
	}
	now := w.gateway.now()
	answer, got, err := w.count(ctx)
	if err != nil {
		return false, err
	}
	if got != w.want {
		time.Sleep(time.Second)
		_, later, err := w.count(ctx)
		return false, fmt.Errorf("%s was called %d times, and the probe that outlives gateways has counted %d, and a second later %d (%v; it was asked in life %d of the gateway, and in %d): %s",
			w.function.name, w.want, got, later, err, now, w.gateway.now(), answer)
	}
	return now != w.planted, nil
}

// count returns the probe's document and count.
func (w *keptProbe) count(ctx context.Context) (answer string, n int64, err error) {
	if answer, err = w.post(ctx, fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="%s"/></ctrlreq>`, w.id)); err != nil {
		return "", 0, err
	}
	if v := value.FindStringSubmatch(answer); v != nil {
		n, err = strconv.ParseInt(v[1], 10, 64)
	}
	return answer, n, err
}

// release removes the application with the probe.
func (w *keptProbe) release(ctx context.Context) error {
	_, err := w.ask(ctx, client.Request{Method: http.MethodDelete, Path: "/apps/" + w.app})
	return err
}
