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

	"mirador/cli/client"
)

// witness is a probe that was asked for by a document, before the torture. A killed
// gateway leaves it to the next one, and whoever reads it must find every call since
// then. It is its judge's.
type witness struct {
	gateway  *gateway
	app, id  string
	function function
	want     int64
	planted  int    // in which life of the gateway
	mortal   string // why it ends with its gateway; "": it does not
}

// What is read of documents that the gateway answers with.
var (
	probeID   = regexp.MustCompile(`<probe id="([^"]*)"`)
	placement = regexp.MustCompile(`where="([^"]*)" why="([^"]*)"`)
	value     = regexp.MustCompile(`value="(\d+)"`)
)

// newWitness takes the victim in as an application, and plants the probe. Nobody may be
// asking the gateway for anything else.
func newWitness(g *gateway, v *victim, f function) (*witness, error) {
	w := &witness{gateway: g, app: "witness-" + nameOfTool(v.name), function: f, planted: g.now()}
	body, err := json.Marshal(map[string]any{"name": w.app, "attach": []int{v.pid()}})
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
		return nil, fmt.Errorf("the gateway answers %s", probe)
	}
	w.id = id[1]
	for _, p := range placement.FindAllStringSubmatch(probe, -1) {
		if p[1] == "trap" {
			w.mortal = p[2]
		}
	}
	return w, nil
}

func (w *witness) ask(ctx context.Context, r client.Request) (*client.Reply, error) {
	return w.gateway.ask(ctx, w.gateway.now(), r)
}

func (w *witness) post(ctx context.Context, document string) (string, error) {
	reply, err := w.ask(ctx, client.Request{Method: http.MethodPost, Path: "/apps/" + w.app + "/mir", Type: "application/xml", Prefer: "return=representation", Body: []byte(document)})
	if err != nil {
		return "", err
	}
	return string(reply.Body), nil
}

// compare has the probe tell what the victim has counted; outlived tells that it has
// outlived a gateway. Without a call there is no value.
func (w *witness) compare(ctx context.Context) (outlived bool, err error) {
	if w.mortal != "" {
		return false, nil
	}
	now := w.gateway.now()
	answer, got, err := w.testify(ctx)
	if err != nil {
		return false, err
	}
	if got != w.want {
		time.Sleep(time.Second)
		_, later, err := w.testify(ctx)
		return false, fmt.Errorf("%s was called %d times, and the probe that outlives gateways has counted %d, and a second later %d (%v; it was asked in life %d of the gateway, and in %d): %s",
			w.function.name, w.want, got, later, err, now, w.gateway.now(), answer)
	}
	return now != w.planted, nil
}

// testify has the probe tell how often it has counted.
func (w *witness) testify(ctx context.Context) (answer string, n int64, err error) {
	if answer, err = w.post(ctx, fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="%s"/></ctrlreq>`, w.id)); err != nil {
		return "", 0, err
	}
	if v := value.FindStringSubmatch(answer); v != nil {
		n, err = strconv.ParseInt(v[1], 10, 64)
	}
	return answer, n, err
}

// release takes the probe away.
func (w *witness) release(ctx context.Context) error {
	_, err := w.ask(ctx, client.Request{Method: http.MethodDelete, Path: "/apps/" + w.app})
	return err
}
