package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"mirador/omis/linux"
	"mirador/omis/place/calibrate"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// costs measures what probes cost on this machine, as a gateway does.
func costs(ctx context.Context) finding {
	node, err := linux.Open(linux.Config{Name: "doctor"})
	if err != nil {
		return failed(err, "")
	}
	inCode, inKernel := inline.New(node), kernel.New(nil)
	known := calibrate.New(calibrate.Config{
		Node: node, Placers: []program.Placer{inCode, inKernel}, Log: slog.New(slog.DiscardHandler),
	})
	var said, unknown []string
	advise := ""
	for _, name := range []string{inline.Name, kernel.Name, calibrate.Held} {
		if err := known.Try(name); err != nil {
			unknown = append(unknown, fmt.Sprintf("%s: not known (%s)", name, firstLine(err)))
			if name == kernel.Name {
				advise = needBPF()
			}
			continue
		}
		said = append(said, name+" "+strings.Join(prices(known, name), ", "))
	}
	why := strings.Join(append(said, unknown...), "; ")
	if err := errors.Join(known.Close(), inCode.Close(), inKernel.Close(), node.Close(ctx)); err != nil {
		return failed(err, "")
	}
	if len(unknown) > 0 {
		return limited(why, advise)
	}
	return fine(why)
}

// prices describes what a hit costs for each kind of place of a placement: to count and to time, or
// to append a record.
func prices(known *calibrate.Costs, placement string) (list []string) {
	for _, kind := range known.Kinds(placement) {
		c, _ := known.Cost(placement, kind)
		if c.Time == 0 {
			list = append(list, fmt.Sprintf("%s ns (%s)", nanoseconds(c.Count), kind))
			continue
		}
		list = append(list, fmt.Sprintf("%s ns to count and %s to time (%s)", nanoseconds(c.Count), nanoseconds(c.Time), kind))
	}
	return list
}

func nanoseconds(ns float64) string {
	if ns < 10 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}
