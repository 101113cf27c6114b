//go:build linux && amd64

package possible

import (
	"slices"

	"mirador/omis"
	"mirador/omis/code/x86/landing"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
	"mirador/sir"
)

// placements are all placements, the cheapest first.
var placements = []string{inline.Name, kernel.Name, omis.Trap}

// Regions without refusals share their placements: most regions are such.
var (
	everywhere   = &sir.Placements{Counted: placements, Timed: placements}
	countedAlone = &sir.Placements{Counted: placements}
)

// judge returns the placements of a region. There is at least one entry. Without exits it is not timed.
func (c *code) judge(entries, exits []uint64) *sir.Placements {
	p := new(sir.Placements)
	for _, name := range placements {
		counted, timed := c.refusals(name, entries, exits)
		switch {
		case counted.why != "":
			p.Refusals = append(p.Refusals, sir.Refusal{Placement: name, Of: sir.OfCount, Address: counted.addr, Reason: counted.why})
			continue
		case timed.why != "":
			p.Refusals = append(p.Refusals, sir.Refusal{Placement: name, Of: sir.OfTime, Address: timed.addr, Reason: timed.why})
		case len(exits) > 0:
			p.Timed = append(p.Timed, name)
		}
		p.Counted = append(p.Counted, name)
	}
	switch {
	case len(p.Refusals) > 0:
		return p
	case len(exits) > 0:
		return everywhere
	}
	return countedAlone
}

// refusals returns why a placement cannot count entries, and why it cannot measure the time from there to exits.
func (c *code) refusals(placement string, entries, exits []uint64) (counted, timed refusedAt) {
	var refused func(uint64) string
	switch placement {
	case inline.Name:
		return c.inlineRefusals(entries, exits)
	case kernel.Name:
		refused = c.kernel
	default:
		refused = c.trap
	}
	if counted = first(entries, refused); counted.why != "" {
		return counted, timed
	}
	if timed = c.goroutines(placement, entries[0]); timed.why == "" {
		timed = first(exits, refused)
	}
	return counted, timed
}

// inlineRefusals does what refusals does. The room for a jump depends on the other ones.
func (c *code) inlineRefusals(entries, exits []uint64) (counted, timed refusedAt) {
	timed = c.inline(slices.Concat(entries, exits))
	if timed.why != "" && len(exits) > 0 {
		counted = c.inline(entries)
	} else {
		counted = timed
	}
	if timed.why == "" {
		timed = c.goroutines(inline.Name, entries[0])
	}
	return counted, timed
}

// goroutines returns why a placement times nothing in Go code at an address.
func (c *code) goroutines(placement string, addr uint64) refusedAt {
	switch runtime := c.runtime(addr); {
	case runtime == nil:
	case placement == kernel.Name:
		return refusedAt{addr, kernel.OfThreads}
	case runtime.Unknown != nil:
		return refusedAt{addr, inline.Indistinct(runtime.Unknown)}
	}
	return refusedAt{}
}

func (c *code) runtime(addr uint64) *landing.Runtime {
	s, err := c.Surveyor(addr)
	if err != nil {
		return nil
	}
	return s.Module.Runtime(addr - s.Base)
}
