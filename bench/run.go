package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// size is that of the measured request.
const size = 1024

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "mirador-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := stayOff(); err != nil {
		return err
	}
	mirador, err := start(ctx, dir, "mirador", o.mirador, "serve", "--listen", "off",
		"--socket", socketOf(dir, "mirador"), "--data", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return err
	}
	defer mirador.stop()
	if err := launch(ctx, mirador.socket, o.target); err != nil {
		return err
	}
	defer release(mirador.socket)
	probe, err := plant(ctx, mirador.socket)
	if err != nil {
		return err
	}
	worst := 1.0
	fmt.Printf("%-34s %12s %12s %9s %12s %12s %9s\n", "request of 1 KiB", "mirador/s", "bare chi/s", "ratio", "mirador CPU", "bare CPU", "ratio")
	for _, r := range requests(probe) {
		ratio, err := compare(ctx, o, dir, mirador, r)
		if err != nil {
			return err
		}
		worst = min(worst, ratio)
	}
	if err := watchMemory(ctx, mirador, requests(probe)[0].text, o.memory); err != nil {
		return err
	}
	if worst < o.least {
		return fmt.Errorf("a ratio is %.2f, less than %.2f", worst, o.least)
	}
	return nil
}

// launch starts a target that waits, so that it takes no time from anybody. An
// interrupt does not break it off, or nobody would know of the target.
func launch(ctx context.Context, socket, target string) error {
	path, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"name": "bench", "launch": map[string]any{
		"path": path, "args": []string{"--wait", "4"}, "stdout": os.DevNull, "stderr": os.DevNull,
	}})
	if err != nil {
		return err
	}
	_, err = post(context.WithoutCancel(ctx), socket, "/apps", "application/json", string(body))
	return err
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

// request is a VALUE request of 1 KiB and how it comes to that size.
type request struct {
	name string
	text []byte
}

// requests are two ends: one long comment, which is scanned only, and as many
// elements as fit, each of them validated and decoded.
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

// compare runs alternate rounds of the two servers and prints their rates.
func compare(ctx context.Context, o options, dir string, mirador *server, r request) (ratio float64, err error) {
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
			if round > 0 { // the first warms up
				samples[i] = append(samples[i], one)
			}
		}
	}
	return report(r.name, o.requests, samples[0], samples[1]), nil
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

// report prints the best rounds and the median ones, and answers the median of
// the ratios of rates.
func report(name string, n int, ours, bare []sample) float64 {
	wall := func(s sample) time.Duration { return s.wall }
	cpu := func(s sample) time.Duration { return s.cpu }
	line := func(which string, a, b, c, d time.Duration, ratio, ratioCPU float64) {
		rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
		fmt.Printf("%-34s %12.0f %12.0f %9.2f %12v %12v %9.2f  %s\n", name, rate(a), rate(b), ratio,
			c/time.Duration(n), d/time.Duration(n), ratioCPU, which)
	}
	a, b, c, d := least(ours, wall), least(bare, wall), least(ours, cpu), least(bare, cpu)
	line("best", a, b, c, d, b.Seconds()/a.Seconds(), d.Seconds()/c.Seconds())
	ratio := neighbours(ours, bare, wall)
	line("median", median(ours, wall), median(bare, wall), median(ours, cpu), median(bare, cpu), ratio, neighbours(ours, bare, cpu))
	return ratio
}

// neighbours is the median of what each round took of the bare server, as a
// part of what the round of ours beside it took.
func neighbours(ours, bare []sample, of func(sample) time.Duration) float64 {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = of(bare[i]).Seconds() / of(ours[i]).Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func sorted(samples []sample, of func(sample) time.Duration) []time.Duration {
	all := make([]time.Duration, len(samples))
	for i, s := range samples {
		all[i] = of(s)
	}
	slices.Sort(all)
	return all
}

func least(samples []sample, of func(sample) time.Duration) time.Duration {
	return sorted(samples, of)[0]
}

func median(samples []sample, of func(sample) time.Duration) time.Duration {
	return sorted(samples, of)[len(samples)/2]
}

// watchMemory prints the gateway's memory as requests go by: it must not grow.
func watchMemory(ctx context.Context, s *server, request []byte, n int) error {
	const steps = 10
	fmt.Printf("\nresident memory of mirador over %d requests, MiB:", n)
	for range steps {
		if err := load(ctx, s, request, n/steps); err != nil {
			return err
		}
		kib, err := s.resident()
		if err != nil {
			return err
		}
		fmt.Printf(" %.1f", float64(kib)/1024)
	}
	fmt.Println()
	return nil
}
