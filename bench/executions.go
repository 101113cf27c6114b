package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/bench/report"
)

// executionRounds is the number of seconds with the probe, and as many without.
const executionRounds = 7

// measureExecutions measures a probe that delivers every execution of a function that is executed
// more often than documents can be written: what that adds to an execution, and whether each one
// is either delivered or reported as lost.
func measureExecutions(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "executions", Title: "A probe that delivers every execution (delivery -1) to a file"}
	err := withWorking(ctx, o, "when-needed", func(s *server, dir string, pid int) error {
		r := &poster{ctx: ctx, server: s, took: make(map[string][]float64)}
		file := filepath.Join(dir, "values")
		const region = `<codeRegion from="mmul:dot"/><metric name="COUNT"/>`
		r.err = r.post(`<instrreq activated="true" flush="true">` + region + `</instrreq>`)
		if r.err == nil {
			r.err = r.post(fmt.Sprintf(`<instrreq flush="true">%s<measuring delivery="-1" destination="file://%s"/></instrreq>`, region, file))
		}
		var without, with []float64
		for round := range executionRounds {
			o.progress.Say("%s: round %d of %d", t.Title, round+1, executionRounds)
			without = append(without, r.timeOfEach(pid))
			r.control("on", "ACTIVATE", `<probe id="probe-2"/>`)
			with = append(with, r.timeOfEach(pid))
			r.control("off", "DEACTIVATE", `<probe id="probe-2"/>`)
		}
		if r.err != nil {
			return r.err
		}
		bare := report.Summary(without)
		t.Add(report.Row{What: "CPU time of an execution", Unit: report.Nanoseconds, Ours: report.Summary(with), Than: "switched off", Reference: &bare, Goal: report.Within(1.1)})
		executed := r.executed("probe-2")
		time.Sleep(time.Second) // the last documents are on their way
		delivered, lost, err := accounted(file)
		if err == nil {
			err = r.err
		}
		share := func(n float64) report.Stat { return report.Stat{Least: n / executed, Median: n / executed} }
		t.Add(report.Row{What: "delivered, of all executions", Ours: share(delivered)})
		t.Add(report.Row{What: "delivered or reported as lost", Ours: share(delivered + lost), Goal: report.AtLeast(1)})
		t.Note("%.0f executions in a second of CPU time while the probe was on, by the median.", 1e9/report.Median(with))
		return err
	})
	return t, err
}

// executed returns the value of a probe that counts.
func (r *poster) executed(probe string) float64 {
	if r.err != nil {
		return 0
	}
	var text []byte
	if text, r.err = post(r.ctx, r.server.socket, "/mir", "application/xml", `<ctrlreq action="VALUE"><probe id="`+probe+`"/></ctrlreq>`); r.err != nil {
		return 0
	}
	value, err := numberIn(string(text), `value="`)
	r.err = err
	return value
}

// timeOfEach returns the CPU time of the process for each execution, during a second.
func (r *poster) timeOfEach(pid int) float64 {
	before, n := r.cpuTimeOf(pid), r.executed("probe-1")
	time.Sleep(time.Second)
	return float64(r.cpuTimeOf(pid)-before) / (r.executed("probe-1") - n)
}

func (r *poster) cpuTimeOf(pid int) time.Duration {
	used, err := cpuTimeOf(pid)
	if r.err == nil {
		r.err = err
	}
	return used
}

// numberIn returns the number that follows a text, 0 if the text does not occur.
func numberIn(text, before string) (float64, error) {
	_, rest, found := strings.Cut(text, before)
	if !found {
		return 0, nil
	}
	digits, _, _ := strings.Cut(rest, `"`)
	return strconv.ParseFloat(digits, 64)
}

// accounted returns the number of documents in a file, and of the executions that they report as
// lost: those that were overwritten before they were read, and those that had no room in the queue.
func accounted(file string) (delivered, lost float64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		delivered++
		for _, attribute := range []string{` lost="`, `gateway:lost="`} {
			n, err := numberIn(line, attribute)
			if err != nil {
				return 0, 0, err
			}
			lost += n
		}
	}
	return delivered, lost, nil
}
