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
	socket := filepath.Join(dir, "mirador.sock")
	mirador, err := start(ctx, "mirador", socket, o.mirador, "serve", "--listen", "off", "--socket", socket, "--data", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return err
	}
	defer mirador.stop()
	probe, err := prepare(ctx, socket, o.target)
	if err != nil {
		return err
	}
	defer release(socket)
	worst := 1.0
	fmt.Printf("%-34s %12s %12s %9s %12s %12s %9s\n", "request of 1 KiB", "mirador/s", "bare chi/s", "ratio", "mirador CPU", "bare CPU", "ratio")
	for _, r := range requests(probe) {
		ratio, err := compare(ctx, o, dir, mirador, r)
		if err != nil {
			return err
		}
		worst = min(worst, ratio)
	}
	if err := watchMemory(mirador, requests(probe)[0].text, o.memory); err != nil {
		return err
	}
	if worst < o.least {
		return fmt.Errorf("a ratio is %.2f, less than %.2f", worst, o.least)
	}
	return nil
}

// prepare starts a target that waits, so that it takes no time from anybody, and
// plants a probe in it.
func prepare(ctx context.Context, socket, target string) (probe string, err error) {
	path, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{"name": "bench", "launch": map[string]any{
		"path": path, "args": []string{"--wait", "4"}, "stdout": os.DevNull, "stderr": os.DevNull,
	}})
	if err != nil {
		return "", err
	}
	if _, err := post(ctx, socket, "/apps", "application/json", string(body)); err != nil {
		return "", err
	}
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
			one, err := measure(s, r.text, o.requests)
			if err != nil {
				return 0, err
			}
			if round > 0 { // the first warms up
				samples[i] = append(samples[i], one)
			}
		}
	}
	return report(r.name, o.requests, samples[0], samples[1]), ctx.Err()
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
	file, socket := filepath.Join(dir, "reply"), filepath.Join(dir, "bare.sock")
	if err := os.WriteFile(file, reply, 0o600); err != nil {
		return nil, err
	}
	return start(ctx, "bare chi", socket, self, bareCommand, socket, file)
}

func measure(s *server, request []byte, n int) (sample, error) {
	before, err := s.cpuTime()
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	if err := load(s, request, n); err != nil {
		return sample{}, err
	}
	wall := time.Since(began)
	after, err := s.cpuTime()
	return sample{wall, after - before}, err
}

func report(name string, n int, ours, bare []sample) float64 {
	wall := func(s sample) time.Duration { return s.wall }
	cpu := func(s sample) time.Duration { return s.cpu }
	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	each := func(d time.Duration) time.Duration { return d / time.Duration(n) }
	for _, statistic := range []struct {
		name string
		of   func([]sample, func(sample) time.Duration) time.Duration
	}{{"best", least}, {"median", median}} {
		a, b := statistic.of(ours, wall), statistic.of(bare, wall)
		c, d := statistic.of(ours, cpu), statistic.of(bare, cpu)
		fmt.Printf("%-34s %12.0f %12.0f %9.2f %12v %12v %9.2f  %s\n", name, rate(a), rate(b), b.Seconds()/a.Seconds(),
			each(c), each(d), d.Seconds()/c.Seconds(), statistic.name)
	}
	return median(bare, wall).Seconds() / median(ours, wall).Seconds()
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
func watchMemory(s *server, request []byte, n int) error {
	const steps = 10
	fmt.Printf("\nresident memory of mirador over %d requests, MiB:", n)
	for range steps {
		if err := load(s, request, n/steps); err != nil {
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
