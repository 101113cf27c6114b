package gateway

import (
	"context"
	"io/fs"

	"mirador/mir"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
)

// Backend is the monitor as the gateway sees it. cli joins it from the node,
// the engine and the probes; the tests of this package have a scripted one.
//
// All methods may be called from any goroutine. Errors are *Fault, *omis.Error
// or errors of the packages below; anything else is answered with 500.
type Backend interface {
	// Apps lists the applications, in the order of their names.
	Apps() []App
	// Launch starts a program as a process of an application, and makes the
	// application if there is none of that name.
	Launch(ctx context.Context, app string, l node.Launch) (App, error)
	// Attach takes running processes into an application; without a name, into
	// one that is named after the first program.
	Attach(ctx context.Context, app string, pids []int) (App, error)
	// Forked lists the processes that a process, or one of its children, has forked and
	// that still execute the same program.
	Forked(pid int) []int
	// Follow makes an application take in what its processes fork from now on.
	Follow(ctx context.Context, app string) error
	// Release forgets an application: its probes are removed, its processes go
	// on. kill ends those that the monitor started.
	Release(ctx context.Context, app string, kill bool) error

	// Do carries out a MIR request on an application. The document is nil where
	// MIR has no answer: to a request that only sets defaults or flushes.
	Do(ctx context.Context, app string, doc mir.Document) (mir.Document, error)
	// Explain says what Do would do, without doing it.
	Explain(ctx context.Context, app string, doc mir.Document) (mir.Document, error)

	// Programs are the files that the application's processes run: executables
	// and libraries.
	Programs(ctx context.Context, app string) ([]string, error)
	// Structure is what the application's programs are made of; files chooses
	// among them, none means all; of others, those are read that are configured. tag changes
	// when the structure does.
	Structure(ctx context.Context, app string, files []string, configured func(file string) bool) (s *sir.Structure, tag string, err error)

	// Probes lists the probes of all applications.
	Probes() []Probe
	// Probe returns the probe with an id; ok is false if there is none.
	Probe(id string) (p Probe, ok bool)
	// Labelled returns the values of the probes of some applications that have a label.
	Labelled(ctx context.Context, apps []string) []probes.Labelled
	// CountProbes returns the number of probes.
	CountProbes() int
	// Subscribe sends the measurement documents of a probe after an event until cancel is
	// called or the probe is removed.
	Subscribe(id string, after uint64) (documents <-chan deliver.Event, cancel func(), err error)

	// OMISRole is the role that a request takes, read from the table of
	// services. A request that cannot be parsed takes Read: its reply says why.
	OMISRole(request string) Role
	// OMIS sends a request for a tool and waits for its first reply; the tool is made
	// by its first request. With omis.BufferRequest there may be none yet.
	OMIS(ctx context.Context, tool, request string, flags omis.Flags) (omis.Reply, error)
	// Replies sends the further replies of a tool's requests, and what belongs to
	// none of them (OMIS 7.1.3), until cancel is called: those behind the one that is
	// numbered after; 0: those that no stream has had yet.
	Replies(tool string, after uint64) (replies <-chan StreamedReply, cancel func(), err error)
	// Describe adds prototypes of library functions to those that the monitor
	// knows; name is the file's, for the messages.
	Describe(name, text string) error
	// Finalize ends a tool that OMIS made (OMIS 7.1.4).
	Finalize(tool string) error

	// Catalog lists the metrics.
	Catalog() []Metric
	// Services lists the OMIS services.
	Services() []service.Service
	// Tools lists the tools of the monitor, by their names.
	Tools() []Tool
	// Schemas is what GET /schemas/… serves.
	Schemas() fs.FS
	// Ready tells why the monitor cannot serve, nil if it can.
	Ready() error
}

// StreamedReply is a reply on the stream of a tool. Numbers grow by one from reply to
// reply; 0 is none.
type StreamedReply struct {
	ID    uint64
	Reply omis.Reply
}

// The tables that the gateway sends are those of the packages that know their contents.
type (
	App     = probes.AppStatus
	Process = probes.Process
	Probe   = probes.Status
	Metric  = translate.Metric
)

// Tool is a tool of the monitor (OMIS 7.1).
type Tool struct {
	Name        string `json:"name" xml:"name,attr"`
	Application bool   `json:"application" xml:"application,attr"` // its own, not made by POST /omis
	Streams     int    `json:"streams" xml:"streams,attr"`         // that read its replies now
}

// Service is a row of the answer to GET /omis/services.
type Service struct {
	Name      string `json:"name" xml:"name,attr"`
	Kind      string `json:"kind" xml:"kind,attr"`
	Prototype string `json:"prototype" xml:"prototype,attr"`
	Role      string `json:"role" xml:"role,attr"`
	Support   string `json:"support" xml:"support,attr"` // full, partial or unsupported
	Local     bool   `json:"local" xml:"local,attr"`     // an action that may run where its event is recognised
	Doc       string `json:"doc" xml:",chardata"`
}
