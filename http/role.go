package gateway

import (
	"slices"

	"mirador/mir"
)

// Role is what a caller may do. Each role includes the ones before it.
type Role uint8

const (
	Nobody  Role = iota // no identity needed: health, schemas, the page
	Read                // snapshot, sir, VALUE
	Control             // probes, attach, stop, continue
	Debug               // memory, registers, calls, signals, launch
)

func (r Role) String() string {
	switch r {
	case Nobody:
		return "nobody"
	case Read:
		return "read"
	case Control:
		return "control"
	case Debug:
		return "debug"
	}
	return "unknown"
}

// ParseRole parses the name of a role, as certificates contain it.
func ParseRole(name string) (Role, bool) {
	for _, r := range []Role{Read, Control, Debug} {
		if r.String() == name {
			return r, true
		}
	}
	return Nobody, false
}

// roleOf returns the role that a MIR request requires: Read to ask for values, Control to
// change a probe or to write files.
func roleOf(doc mir.Document) Role {
	switch d := doc.(type) {
	case *mir.SIRRequest:
		if !slices.ContainsFunc(d.Resources, func(r mir.Resource) bool { return r.Out != "" }) {
			return Read
		}
	case *mir.SnapshotRequest:
		return Read
	case *mir.ControlRequest:
		if d.Action == mir.Value && len(d.Metrics) == 0 && d.Measuring == nil && len(d.Entities) == 0 {
			return Read
		}
	}
	return Control
}
