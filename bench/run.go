package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mirador/bench/report"
	"mirador/mir/api"
)

// size is the size of the measured request.
const size = 1024

// run measures the gateway.
func run(ctx context.Context, o options) (*report.Table, error) {
	dir, err := os.MkdirTemp("", "mirador-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := stayOff(); err != nil {
		return nil, err
	}
	mirador, err := start(ctx, dir, "mirador", o.mirador, "serve", "--calibrate", "when-needed", "--listen", "off",
		"--socket", socketOf(dir, "mirador"), "--data", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return nil, err
	}
	defer mirador.stop()
	// This target waits, and so needs no processor time.
	if _, err := launch(ctx, mirador.socket, o.target, "--wait", "4"); err != nil {
		return nil, err
	}
	defer release(mirador.socket)
	probe, err := plant(ctx, mirador.socket)
	if err != nil {
		return nil, err
	}
	t := &report.Table{Name: "gateway", Title: "A request of 1 KiB through the gateway, each on one CPU"}
	worst := 1.0
	for _, r := range requests(probe) {
		o.progress.Say("the gateway: %s", r.name)
		ratio, err := compare(ctx, o, dir, mirador, r, t)
		if err != nil {
			return t, err
		}
		worst = min(worst, ratio)
	}
	o.progress.Say("the gateway: its memory")
	if err := watchMemory(ctx, mirador, requests(probe)[0].text, o.memory, t); err != nil {
		return t, err
	}
	if worst < o.least {
		return t, fmt.Errorf("a ratio is %.2f, less than %.2f", worst, o.least)
	}
	return t, nil
}

// launch starts a target and returns its pid. An interrupt does not cancel the request, because the target would
// be lost.
func launch(ctx context.Context, socket, target string, args ...string) (pid int, err error) {
	path, err := filepath.Abs(target)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(map[string]any{"name": "bench", "launch": map[string]any{
		"path": path, "args": args, "stdout": os.DevNull, "stderr": os.DevNull,
	}})
	if err != nil {
		return 0, err
	}
	reply, err := post(context.WithoutCancel(ctx), socket, "/apps", "application/json", string(body))
	if err != nil {
		return 0, err
	}
	var app api.App
	if err := json.Unmarshal(reply, &app); err != nil {
		return 0, err
	}
	return app.Processes[0].PID, nil
}

// plant sets a probe in the target.
func plant(ctx context.Context, socket string) (probe string, err error) {
	reply, err := post(ctx, socket, "/mir", "application/xml",
		`<instrreq activated="true" flush="true"><codeRegion from="mmul:dot"/><metric name="COUNT"/><metric name="WC_TIME"/><process id="*"/></instrreq>`)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(reply), `id="`)
	probe, _, found := strings.Cut(rest, `"`)
	if !found {
		return "", fmt.Errorf("no probe in %s", reply)
	}
	return probe, nil
}

func release(socket string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := remove(ctx, socket, "/apps/bench?kill=true"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: cannot end the target:", err)
	}
}

// request is a VALUE request of 1 KiB, with a description of its content.
type request struct {
	name string
	text []byte
}

// requests returns two extremes: one long comment, which is only scanned, and as many
// elements as fit, which are all validated and decoded.
func requests(probe string) []request {
	const open, shut = `<ctrlreq action="VALUE">`, `</ctrlreq>`
	element := `<probe id="` + probe + `"/>`
	comment := open + element + "<!-- "
	comment += strings.Repeat("x", size-len(comment)-len(" -->")-len(shut)) + " -->" + shut
	elements := open + strings.Repeat(element, (size-len(open)-len(shut))/len(element))
	elements += strings.Repeat(" ", size-len(elements)-len(shut)) + shut
	return []request{
		{"many elements (the probe, repeated)", message(elements)},
		{"one element and a comment", message(comment)},
	}
}

func message(body string) []byte {
	return fmt.Appendf(nil, "POST /mir HTTP/1.1\r\nHost: mirador\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// sample is one round.
type sample struct{ wall, cpu time.Duration }

// compare runs alternating rounds of the two servers and returns the ratio of their
// rates.
func compare(ctx context.Context, o options, dir string, mirador *server, r request, t *report.Table) (ratio float64, err error) {
	bare, err := startBare(ctx, dir, mirador, r)
	if err != nil {
		return 0, err
	}
	defer bare.stop()
	both := []*server{mirador, bare}
	samples := make([][]sample, len(both))
	for round := range o.rounds + 1 {
		for i, s := range both {
			one, err := measure(ctx, s, r.text, o.requests)
			if err != nil {
				return 0, err
			}
			if round > 0 { // the first round warms up
				samples[i] = append(samples[i], one)
			}
		}
	}
	tell(t, r.name, o.requests, samples[0], samples[1])
	return neighbours(samples[0], samples[1], func(s sample) time.Duration { return s.wall }), nil
}

// startBare starts a bare server that gives the gateway's reply.
func startBare(ctx context.Context, dir string, mirador *server, r request) (*server, error) {
	_, body, _ := strings.Cut(string(r.text), "\r\n\r\n")
	reply, err := post(ctx, mirador.socket, "/mir", "application/xml", body)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const name = "bare"
	file := filepath.Join(dir, "reply")
	if err := os.WriteFile(file, reply, 0o600); err != nil {
		return nil, err
	}
	return start(ctx, dir, name, self, bareCommand, socketOf(dir, name), file)
}

func measure(ctx context.Context, s *server, request []byte, n int) (sample, error) {
	before, err := s.cpuTime()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := load(ctx, s, request, n); err != nil {
		return sample{}, err
	}
	wall := time.Since(began)
	after, err := s.cpuTime()
	return sample{wall, after - before}, err
}

// tell adds rows for the elapsed time and the CPU time of a request.
func tell(t *report.Table, name string, n int, ours, bare []sample) {
	add := func(what string, of func(sample) time.Duration) {
		each := func(samples []sample) report.Stat {
			list := make([]float64, len(samples))
			for i, s := range samples {
				list[i] = float64(of(s)) / float64(n)
			}
			return report.Summary(list)
		}
		other := each(bare)
		t.Add(report.Row{What: what, Unit: report.Nanoseconds, Ours: each(ours), Than: "bare chi", Reference: &other})
	}
	add(name, func(s sample) time.Duration { return s.wall })
	add(name+", CPU", func(s sample) time.Duration { return s.cpu })
}

// neighbours returns the median of the ratios of adjacent rounds: the bare server's time
// divided by ours.
func neighbours(ours, bare []sample, of func(sample) time.Duration) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = of(bare[i]).Seconds() / of(ours[i]).Seconds()
	}
	return report.Median(ratios)
}

// watchMemory records the gateway's memory during many requests: it must not grow.
func watchMemory(ctx context.Context, s *server, request []byte, n int, t *report.Table) error {
	const steps = 10
	var sizes strings.Builder
	for range steps {
		if err := load(ctx, s, request, n/steps); err != nil {
			return err
		}
		kib, err := s.resident()
		if err != nil {
			return err
		}
		fmt.Fprintf(&sizes, " %.1f", float64(kib)/1024)
	}
	t.Note("Resident memory of mirador over %d requests, MiB:%s", n, &sizes)
	return nil
}
