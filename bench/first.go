package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mirador/bench/report"
)

// firstRounds is the number of new gateways for each metric.
const firstRounds = 7

// measureFirst measures how long a user waits for the first value of a new gateway, which
// measures at this time what probes cost.
func measureFirst(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "first", Title: "The first probe of a new gateway, until its first value has been read"}
	t.Note("Without the pause between the probe and its first value.")
	for _, m := range []struct {
		metric string
		limit  time.Duration
	}{{"COUNT", time.Second / 10}, {"WC_TIME", time.Second / 5}} {
		var took []float64
		for round := range firstRounds {
			o.progress.Say("the first %s: round %d of %d", m.metric, round+1, firstRounds)
			one, err := first(ctx, o, m.metric)
			if err != nil {
				return t, err
			}
			took = append(took, float64(one))
		}
		t.Add(report.Row{What: "the first " + m.metric, Unit: report.Nanoseconds, Ours: report.Summary(took), Goal: report.AtMost(float64(m.limit))})
	}
	return t, nil
}

// first starts a gateway with default settings and a target, and returns the time that the
// requests of the first probe take.
func first(ctx context.Context, o options, metric string) (took time.Duration, err error) {
	const pause = 300 * time.Millisecond // for executions of the region
	return took, withWorking(ctx, o, "at-start", func(s *server, _ string, _ int) error {
		time.Sleep(pause)
		began := time.Now()
		probe := fmt.Sprintf(`<instrreq activated="true" flush="true"><codeRegion from="mmul:dot"/><metric name="%s"/></instrreq>`, metric)
		if _, err := post(ctx, s.socket, "/mir", "application/xml", probe); err != nil {
			return err
		}
		time.Sleep(pause)
		value, err := post(ctx, s.socket, "/mir", "application/xml", `<ctrlreq action="VALUE"><probe id="probe-1"/></ctrlreq>`)
		if err != nil {
			return err
		}
		if took = time.Since(began) - pause; !strings.Contains(string(value), `value="`) {
			return fmt.Errorf("the first value is %s", value)
		}
		return nil
	})
}

// withWorking calls do with a new gateway, its directory, and the pid of a program that executes
// mmul:dot in one thread about 200,000 times a second.
func withWorking(ctx context.Context, o options, calibrate string, do func(s *server, dir string, pid int) error) error {
	dir, err := os.MkdirTemp("", "mirador-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := startFree(dir, "mirador", exec.Command(o.mirador, "serve", "--calibrate", calibrate, "--listen", "off",
		"--socket", socketOf(dir, "mirador"), "--data", filepath.Join(dir, "data"), "--log-level", "warn"))
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.ready(ctx); err != nil {
		return err
	}
	pid, err := launch(ctx, s.socket, o.target, "1", "1024")
	if err != nil {
		return err
	}
	defer release(s.socket)
	return do(s, dir, pid)
}
