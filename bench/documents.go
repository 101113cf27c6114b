package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mirador/bench/report"
)

// documentRounds is small, because a round takes long and varies little.
const documentRounds = 3

// The measured steps. "all" means one request for all probes.
const (
	asking       = "a probe asked for, one of all"
	lateAsking   = "a probe asked for, one of the last thousand"
	flushing     = "all flushed"
	valuing      = "all read (VALUE)"
	deactivating = "all switched off (DEACTIVATE)"
	activating   = "all switched on (ACTIVATE)"
	listing      = "all listed (GET /probes)"
	oneValue     = "one read, of so many"
	taking       = "all removed (REMOVE)"
)

// measureDocuments measures many probes through the gateway: one document defines each of
// them, and one document reads, switches or removes all.
func measureDocuments(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "documents", Title: fmt.Sprintf("%d functions probed by documents, through the gateway", o.documents)}
	dir, err := os.MkdirTemp("", "mirador-bench-documents-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	took := make(map[string][]float64)
	for round := range documentRounds {
		o.progress.Say("%d documents: round %d of %d", o.documents, round+1, documentRounds)
		if err := documentRound(ctx, o, filepath.Join(dir, fmt.Sprint(round)), took); err != nil {
			return t, err
		}
	}
	goals := map[string]report.Goal{asking: report.AtMost(float64(time.Millisecond) / 2), flushing: report.AtMost(float64(time.Second)), taking: report.AtMost(float64(time.Second))}
	for _, step := range []string{asking, lateAsking, flushing, oneValue, valuing, listing, deactivating, activating, taking} {
		t.Add(report.Row{What: step, Unit: report.Nanoseconds, Ours: report.Summary(took[step]), Goal: goals[step]})
	}
	for _, step := range []string{flushing, taking} {
		t.Add(report.Row{What: step + inCPU, Unit: report.Nanoseconds, Ours: report.Summary(took[step+inCPU])})
	}
	return t, nil
}

// documentRound performs all steps with a gateway and a target of its own.
func documentRound(ctx context.Context, o options, dir string, took map[string][]float64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return withMany(ctx, o, dir, func(s *server) error {
		r := &poster{ctx: ctx, server: s, asked: o.documents, took: took}
		r.warmUp()
		r.askAll()
		r.control(oneValue, "VALUE", `<probe id="probe-2"/>`)
		r.control(valuing, "VALUE", r.all())
		r.timed(listing, func() error { _, err := send(ctx, s.socket, "GET", "/probes", "", ""); return err })
		r.control(deactivating, "DEACTIVATE", r.all())
		r.control(activating, "ACTIVATE", r.all())
		r.control(taking, "REMOVE", r.all())
		return r.err
	})
}

// poster posts requests to a gateway, until the first error.
type poster struct {
	ctx       context.Context
	server    *server
	asked     int    // number of probed functions; a document for each
	measuring string // the element of that name in each request, or ""
	took      map[string][]float64
	err       error
}

// inCPU is added to the name of a step for the CPU time of the gateway.
const inCPU = ", CPU"

// timed records the time that a step takes, and the CPU time of the gateway.
func (r *poster) timed(step string, do func() error) {
	if r.err != nil {
		return
	}
	began := time.Now()
	used, err := r.server.during(do)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", step, err)
		return
	}
	r.took[step] = append(r.took[step], float64(time.Since(began)))
	r.took[step+inCPU] = append(r.took[step+inCPU], float64(used))
}

func (r *poster) post(text string) error {
	_, err := post(r.ctx, r.server.socket, "/mir", "application/xml", text)
	return err
}

// warmUp makes the gateway calibrate probes before the measurement.
func (r *poster) warmUp() {
	r.err = r.post(`<instrreq activated="true" flush="true"><codeRegion from="many:f_0"/><metric name="COUNT"/></instrreq>`)
	if r.err == nil {
		r.err = r.post(`<ctrlreq action="REMOVE"><probe id="probe-1"/></ctrlreq>`)
	}
}

// askAll defines all probes over one connection, then flushes.
func (r *poster) askAll() {
	late := min(r.asked/2, 1000)
	ask := func(step string, from, to int) {
		var texts []string
		for i := from; i < to; i++ {
			texts = append(texts, string(message(fmt.Sprintf(`<instrreq activated="true"><codeRegion from="many:f_%d"/><metric name="COUNT"/>%s</instrreq>`, i, r.measuring))))
		}
		r.timed(step, func() error { return inTurn(r.ctx, r.server, texts) })
	}
	ask(asking, 0, r.asked-late)
	ask(lateAsking, r.asked-late, r.asked)
	if r.err != nil {
		return
	}
	first, last := lastOf(r.took[asking]), lastOf(r.took[lateAsking])
	*first, *last = (*first+*last)/float64(r.asked), *last/float64(late)
	r.timed(flushing, func() error { return r.post(`<instrreq flush="true"/>`) })
}

func lastOf(list []float64) *float64 { return &list[len(list)-1] }

// all returns elements for all probes; the probe of warmUp had the first number.
func (r *poster) all() string {
	var b strings.Builder
	for i := range r.asked {
		fmt.Fprintf(&b, `<probe id="probe-%d"/>`, i+2)
	}
	return b.String()
}

func (r *poster) control(step, action, probes string) {
	r.timed(step, func() error { return r.post(`<ctrlreq action="` + action + `">` + probes + `</ctrlreq>`) })
}
