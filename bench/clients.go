package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"mirador/bench/report"
)

// The clients of the section: each has a connection and a probe of its own.
const (
	clients       = 1000
	clientRounds  = 5
	clientSeconds = 3 // of a round
)

// measureClients measures many clients that each poll the value of a probe: as fast as the
// gateway answers, and once a second each.
func measureClients(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "clients", Title: fmt.Sprintf("%d clients that poll the values of as many probes (VALUE)", clients)}
	dir, err := os.MkdirTemp("", "mirador-bench-clients-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	if err := stayOff(); err != nil {
		return t, err
	}
	return t, withMany(ctx, o, dir, func(s *server) error {
		r := &poster{ctx: ctx, server: s, asked: clients, took: make(map[string][]float64)}
		r.warmUp()
		r.askAll()
		if r.err != nil {
			return r.err
		}
		bare, err := startBare(ctx, dir, s, request{text: valueOf(0)})
		if err != nil {
			return err
		}
		defer bare.stop()
		for _, pace := range []time.Duration{0, time.Second} {
			if err := pollAll(ctx, o, []*server{s, bare}, pace, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// valueOf returns the request of a client.
func valueOf(client int) []byte {
	return message(fmt.Sprintf(`<ctrlreq action="VALUE"><probe id="probe-%d"/></ctrlreq>`, client+2))
}

// polled are the figures of the rounds of a server.
type polled struct{ cpu, half, most, ratio []float64 }

// pollAll adds the rows of clients that send a request every pace, or as fast as they can.
func pollAll(ctx context.Context, o options, servers []*server, pace time.Duration, t *report.Table) error {
	how := "as fast as answered"
	if pace > 0 {
		how = "each once a second"
	}
	all := make([]polled, len(servers))
	for round := range clientRounds {
		o.progress.Say("%s, %s: round %d of %d", t.Title, how, round+1, clientRounds)
		for i, s := range servers {
			if err := all[i].round(ctx, s, pace); err != nil {
				return err
			}
		}
	}
	row := func(what string, unit report.Unit, of func(polled) []float64, goal report.Goal) {
		other := report.Summary(of(all[1]))
		t.Add(report.Row{What: how + ": " + what, Unit: unit, Ours: report.Summary(of(all[0])), Than: "bare chi", Reference: &other, Goal: goal})
	}
	row("CPU time of the server for each", report.Nanoseconds, func(p polled) []float64 { return p.cpu }, report.AtMost(float64(60*time.Microsecond)))
	row("half are answered within", report.Nanoseconds, func(p polled) []float64 { return p.half }, report.Goal{})
	row("99 % are answered within", report.Nanoseconds, func(p polled) []float64 { return p.most }, report.Goal{})
	row("ratio of the two", report.Number, func(p polled) []float64 { return p.ratio }, report.AtMost(10))
	return nil
}

// round adds the figures of a round.
func (p *polled) round(ctx context.Context, s *server, pace time.Duration) error {
	var took []time.Duration
	used, err := s.during(func() (err error) {
		took, err = poll(ctx, s, pace)
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	p50, p99 := float64(took[len(took)/2]), float64(took[len(took)*99/100])
	p.cpu = append(p.cpu, float64(used)/float64(len(took)))
	p.half, p.most, p.ratio = append(p.half, p50), append(p.most, p99), append(p.ratio, p99/p50)
	return nil
}

// poll returns how long each answer took.
func poll(ctx context.Context, s *server, pace time.Duration) (took []time.Duration, err error) {
	lines := make([]*line, clients)
	for i := range lines {
		if lines[i], err = call(ctx, s); err != nil {
			return nil, err
		}
		defer lines[i].hangUp()
	}
	each, failed := make([][]time.Duration, clients), make([]error, clients)
	end := time.Now().Add(clientSeconds * time.Second)
	var all sync.WaitGroup
	for i, l := range lines {
		first := time.Duration(i) * pace / clients // clients that pause are spread over the pause
		all.Go(func() {
			time.Sleep(first)
			each[i], failed[i] = l.poll(valueOf(i), pace, end)
		})
	}
	all.Wait()
	return slices.Concat(each...), errors.Join(failed...)
}

// poll sends a request until a time, and returns how long each answer took.
func (l *line) poll(request []byte, pace time.Duration, end time.Time) (took []time.Duration, err error) {
	if err := l.bePatient(); err != nil {
		return nil, err
	}
	for began := time.Now(); began.Before(end); began = time.Now() {
		if err := l.ask(request); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		time.Sleep(pace - time.Since(began))
	}
	return took, nil
}
