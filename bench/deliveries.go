package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/bench/report"
	"mirador/bench/subject"
)

// deliverySeconds is how long deliveries are measured, after as long a time to settle.
const deliverySeconds = 10

// measureDeliveries measures many probes that deliver their values to one file every second:
// the CPU time of the gateway, and how late documents are.
func measureDeliveries(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "deliveries", Title: fmt.Sprintf("%d probes that deliver to a file every second", o.documents)}
	dir, err := os.MkdirTemp("", "mirador-bench-deliveries-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	var busy, late []float64
	err = withMany(ctx, o, dir, func(s *server) error {
		r := &poster{ctx: ctx, server: s, asked: o.documents, took: make(map[string][]float64)}
		file := filepath.Join(dir, "values")
		r.measuring = fmt.Sprintf(`<measuring delivery="1000" destination="file://%s"/>`, file)
		r.warmUp()
		r.askAll()
		if r.err != nil {
			return r.err
		}
		a := &arrivals{first: make(map[string]arrival)}
		for round := range deliverySeconds * 2 {
			o.progress.Say("%s: second %d of %d", t.Title, round+1, 2*deliverySeconds)
			used, err := s.during(func() error { return a.watch(ctx, file, time.Second) })
			if err != nil {
				return err
			}
			if round >= deliverySeconds {
				busy, late = append(busy, 100*used.Seconds()), append(late, float64(a.latest))
			}
			a.latest = 0
		}
		switch got := len(a.first); got {
		case o.documents:
		case 0:
			return errors.New("no probe has delivered")
		default:
			t.Note("Only %d probes have delivered.", got)
		}
		return nil
	})
	if err != nil {
		return t, err // without rows: no figure is no success
	}
	t.Add(report.Row{What: "CPU time of the gateway, of one processor", Unit: report.Percent, Ours: report.Summary(busy), Goal: report.AtMost(50)})
	t.Add(report.Row{What: "latest document of a second", Unit: report.Nanoseconds, Ours: report.Summary(late), Goal: report.AtMost(float64(100 * time.Millisecond))})
	return t, nil
}

// withMany calls do with a gateway that has a target with many functions as an application.
func withMany(ctx context.Context, o options, dir string, do func(*server) error) (err error) {
	program, err := subject.Compile(ctx, o.hold.Sources, "many", dir)
	if err != nil {
		return err
	}
	s, err := start(ctx, dir, "mirador", o.mirador, "serve", "--calibrate", "when-needed", "--listen", "off", "--longest-request", "1048576",
		"--socket", socketOf(dir, "mirador"), "--data", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return err
	}
	defer s.stop()
	target, err := program.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.End()) }()
	if _, err := post(ctx, s.socket, "/apps", "application/json", fmt.Sprintf(`{"name":"many","attach":[%d]}`, target.PID())); err != nil {
		return err
	}
	return do(s)
}

// during returns the CPU time of the server while do runs.
func (s *server) during(do func() error) (time.Duration, error) {
	before, err := s.cpuTime()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := s.cpuTime()
	return after - before, err
}

// arrivals are the times at which the documents of probes reach a file.
type arrivals struct {
	file   *bufio.Reader
	rest   string // an incomplete line
	first  map[string]arrival
	latest time.Duration
}

// arrival is the document of a probe that came earliest, relative to its number.
type arrival struct {
	number int
	at     time.Time
}

// watch reads what is appended to the file.
func (a *arrivals) watch(ctx context.Context, path string, lasts time.Duration) error {
	if a.file == nil {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		a.file = bufio.NewReaderSize(f, 1<<20)
	}
	for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; {
		line, err := a.file.ReadString('\n')
		if a.rest += line; err == io.EOF {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		if err := a.note(a.rest, time.Now()); err != nil {
			return err
		}
		a.rest = ""
	}
	return ctx.Err()
}

func (a *arrivals) note(line string, now time.Time) error {
	parts := strings.SplitN(line, `"`, 5) // <?mirador probe="probe-1" number="17" …
	if len(parts) < 5 {
		return fmt.Errorf("cannot read %q", line)
	}
	probe := parts[1]
	number, err := strconv.Atoi(parts[3])
	if err != nil {
		return err
	}
	first, ok := a.first[probe]
	late := now.Sub(first.at) - time.Duration(number-first.number)*time.Second
	if !ok || late < 0 {
		a.first[probe] = arrival{number, now}
		return nil
	}
	a.latest = max(a.latest, late)
	return nil
}
