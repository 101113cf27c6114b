package probes

import (
	"context"
	"log/slog"

	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/program"
	"mirador/probes/deliver"
	"mirador/probes/journal"
	"mirador/sir"
)

// Config connects the registry to the monitor and to the runtime of programs.
type Config struct {
	// Node is the name of the node to work on, as node_attach2 takes it.
	Node string
	// Site is the name of the site that contains the node, "" if it is unknown. It is also
	// the site's id in documents.
	Site    string
	Monitor Monitor
	Runtime Runtime
	// Lacks returns the reason why the machine cannot measure a metric, "" if it can; nil: it
	// lacks nothing.
	Lacks func(translate.Metric) string
	// Journal is where the registry writes what the next gateway on the same data
	// directory must know if this one is killed; nil: nothing outlives the gateway.
	Journal *journal.Journal
	// Outline returns the structure of the program that a source file, by its path and text, is compiled to; nil: sources
	// are not read.
	Outline func(ctx context.Context, program, path string, text []byte) (sir.Program, error)
	// Destinations are those that requests may name.
	Destinations deliver.Rules
	// Epoch is what the node's monotonic clock showed, in nanoseconds, when the clock of the
	// monitor's events showed 0.
	Epoch int64
	// Log takes messages that belong to no request; nil is slog.Default.
	Log *slog.Logger
}

// Monitor executes the requests of applications. Its methods may be called from any
// goroutine.
type Monitor interface {
	// Tool connects an application to the monitor, under its name.
	Tool(name string) (omis.Tool, error)
	// Identify returns the identity of a process, which tells it from a later one of the
	// same pid. An error says that there is none.
	Identify(pid int) (omis.ProcID, error)
	// RecallProcess gives a process the token by which an earlier gateway knew it, as soon
	// as a tool attaches to it.
	RecallProcess(id omis.ProcID, token omis.Token)
	// Settle removes what an earlier gateway has left and nothing has asked for.
	Settle() ([]program.Orphan, error)
}

// Runtime knows how the language of a program sees its processes: structure, names of
// addresses, and threads of the language's own. Its methods may be called from any goroutine.
type Runtime interface {
	// Name returns the name of the program that a process executes, "" if it is unknown.
	// Applications are named after it.
	Name(pid int) string
	// Weavings returns the ids of the weavings whose sources programs were built from: a file, or what a
	// process executes, with its libraries, if pid is not 0.
	Weavings(path string, pid int) []string
	// Modules lists the modules of a live process with their structure, the main module
	// first. With the name of a program it lists only modules with that name, and reads no
	// others. It is called for each request that names a region, so it should cache the
	// structures.
	Modules(ctx context.Context, pid int, program string) ([]translate.Module, error)
	// Resolver returns a function that names addresses of a process, as the process is now.
	Resolver(ctx context.Context, pid int) (func(pc uint64, first bool) string, error)
	// Start describes the place at which a new process, which was not continued yet, will have
	// mapped its libraries without having run code of its own.
	Start(pid int) (node.Start, error)
	// Opened lists the libraries that the program of a process has opened and can close.
	Opened(pid int) ([]translate.Library, error)
	// Goroutines lists the goroutines of a process, each with up to depth frames. It returns
	// none if the program is not in Go.
	Goroutines(ctx context.Context, pid, depth int) ([]node.GoroutineInfo, error)
}
