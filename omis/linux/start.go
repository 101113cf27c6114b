//go:build linux && amd64

package linux

import (
	"fmt"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/node"
)

var _ node.StartFinder = (*Node)(nil)

// Start: see node.StartFinder. The kernel starts a statically linked program at its entry
// point, where none of its constructors has run. It starts any other program in the dynamic
// linker, which calls a function for debuggers when everything is mapped and relocated, and
// then the constructors of the libraries, and then the program's entry point.
func (n *Node) Start(p omis.ProcID) (node.Start, error) {
	base, entry := proc.Interpreter(p.PID)
	if base == 0 {
		return node.Start{}, proc.Alive(p)
	}
	modules, err := n.Modules(p)
	if err != nil {
		return node.Start{}, err
	}
	path := "of the program"
	for _, m := range modules {
		if m.Bias != base {
			continue
		}
		path = m.Path
		if l, found := n.library.Linker(p); found && m.CodeStart <= l.Notice && l.Notice < m.CodeStart+m.CodeLen {
			return node.Start{At: l.Notice, Loading: l.Loading}, nil
		}
	}
	return node.Start{
		At: entry, Late: fmt.Sprintf("the constructors of its libraries, because the dynamic linker %s does not report when they are mapped", path),
	}, nil
}
