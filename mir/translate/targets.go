package translate

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/mir"
	"mirador/omis"
	"mirador/sir"
)

// Targets describes the application at the time of a translation.
type Targets struct {
	Node      Node
	Processes []Process // in the order of their tokens
	// Lacks returns the reason why the machine cannot measure a metric, "" if it can; nil: it
	// lacks nothing.
	Lacks func(Metric) string
	// Inside returns the regions inside a function of a module; nil: none can be found.
	Inside func(*Module, *sir.Region) ([]sir.Region, error)
	// Line returns a line of a file of the source of a module; nil: none can be found.
	Line func(m *Module, file string, line int) (*sir.Region, error)
	// Branch returns a region that only sources have, such as a branch, by the id of its function and what follows this in the branch's id;
	// nil: none can be found.
	Branch func(m *Module, of *sir.Region, inside string) (*sir.Region, error)
	// Inlined returns all places where a function is inlined, nil if there are none; nil: none can be found.
	Inlined func(m *Module, name string) (*sir.Region, error)
	// Whole returns all code of a function, with all places where it is inlined; nil: only its own can be found.
	Whole func(m *Module, unit *sir.Region) (*sir.Region, error)
	// Copies says where a function has code besides its own; nil: not known.
	Copies func(m *Module, unit *sir.Region) sir.Copies
}

// Node is the machine of the processes.
type Node struct {
	Token omis.Token
	Name  string
	Site  string // the site that contains it, "" if unknown; its name is also its id
}

// Process is a process of the application. Modules may be empty if the request names no
// region.
type Process struct {
	Token   omis.Token
	Name    string // "" if not asked for
	PID     int
	Threads []Thread // in the order of their tokens
	Modules []Module // the main module first
}

// Thread is a thread of a process.
type Thread struct {
	Token  omis.Token
	Name   string // "" if not asked for
	TID    int
	Master bool
}

// Module is a program loaded into a process. Units is nil if its structure could not be
// read; then there is no Locator.
type Module struct {
	Path    string
	Bias    uint64 // difference of an address in the process and in the file
	Units   sir.Units
	Locator sir.Locator
	// Inside finds the regions inside a function; nil: it has none.
	Inside func(context.Context, *sir.Region) ([]sir.Region, error)
	// Line finds a line of the source; nil: none is known.
	Line func(ctx context.Context, file string, line int) (*sir.Region, error)
	// Branch finds the code of a branch, which a region of a source contains, or of a whole statement; nil: it cannot be found. Declared returns
	// where in the source a function is declared, and when the file of the module was written.
	Branch   func(ctx context.Context, choice, branch *sir.Region) (*sir.Region, error)
	Declared func(ctx context.Context, unit *sir.Region) (file string, line int, built time.Time, err error)
	// Inlined finds all places where a function is inlined; nil: none is known.
	Inlined func(ctx context.Context, name string) (*sir.Region, error)
	// Whole and Copies find what else the compiler made of a function; nil: nothing is known.
	Whole  func(ctx context.Context, unit *sir.Region) (*sir.Region, error)
	Copies func(ctx context.Context, unit *sir.Region) sir.Copies
}

// Library is a library that a program has opened and can close.
type Library struct {
	Path       string
	Dev, Inode uint64 // of its file
	Begin, End uint64 // its code
}

// Name returns the name of the library's file.
func (l *Library) Name() string { return filepath.Base(l.Path) }

// process finds a process by its token, nil if there is none.
func (t *Targets) process(id string) *Process {
	for i := range t.Processes {
		if string(t.Processes[i].Token) == id {
			return &t.Processes[i]
		}
	}
	return nil
}

// owner finds the process of a thread, nil if there is none.
func (t *Targets) owner(thread string) *Process {
	for i := range t.Processes {
		for _, th := range t.Processes[i].Threads {
			if string(th.Token) == thread {
				return &t.Processes[i]
			}
		}
	}
	return nil
}

// ids lists the tokens of a class, for messages.
func (t *Targets) ids(kind mir.EntityKind) []string {
	var ids []string
	switch kind {
	case mir.Site:
		if t.Node.Site != "" {
			ids = append(ids, t.Node.Site)
		}
	case mir.Node:
		ids = append(ids, string(t.Node.Token))
	case mir.Process:
		for _, p := range t.Processes {
			ids = append(ids, string(p.Token))
		}
	case mir.Thread:
		for _, p := range t.Processes {
			for _, th := range p.Threads {
				ids = append(ids, string(th.Token))
			}
		}
	}
	return ids
}

// Before orders tokens by class and number: t_2 precedes t_10.
func Before(a, b omis.Token) bool {
	if n, m := number(a), number(b); n != m && a.Class() == b.Class() {
		return n < m
	}
	return a < b
}

// Number returns the number in a token.
func Number(t omis.Token) int { return int(number(t)) }

func number(t omis.Token) uint64 {
	n, err := strconv.ParseUint(string(t[strings.LastIndexByte(string(t), '_')+1:]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
