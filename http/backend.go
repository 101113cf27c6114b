package gateway

import (
	"context"
	"io/fs"

	"mirador/mir"
	"mirador/mir/api"
	"mirador/mir/translate"
	"mirador/omis"
	"mirador/omis/node"
	"mirador/omis/service"
	"mirador/probes"
	"mirador/probes/deliver"
	"mirador/sir"
)

// Backend is what the gateway needs of a monitor. cli implements it with the engine and the
// probes; the tests of this package have a scripted one.
//
// All methods may be called from any goroutine. Errors are *Fault, *omis.Error or errors of
// the packages that this one imports; other errors are answered with 500.
type Backend interface {
	// Apps lists the applications, in the order of their names.
	Apps() []App
	// Launch starts a program as a process of an application, and creates the application
	// if it does not exist. If pause is not nil, the program waits for Continue.
	Launch(ctx context.Context, app string, l node.Launch, pause *probes.Pause) (App, error)
	// Continue continues the programs of an application that were launched paused.
	Continue(ctx context.Context, app string) (App, error)
	// Attach adds running processes to an application. Without a name, the application has
	// the name of the first program.
	Attach(ctx context.Context, app string, pids []int) (App, error)
	// Create makes an application without processes, which belongs to a user.
	Create(app string, owner int) (App, error)
	// Weave makes later requests on regions of sources write the regions into these.
	Weave(ctx context.Context, app string, s probes.Sources) error
	// NameSources says where sources of an application's programs are, in files of this machine.
	NameSources(app string, files []string) error
	// WovenFor returns the applications whose woven sources a program was built from: a file, or what a process
	// executes, with its libraries, if pid is not 0.
	WovenFor(path string, pid int) []string
	// Forked lists the processes that a process, or one of its children, has forked and
	// that still execute the same program.
	Forked(pid int) []int
	// Follow makes an application attach the processes that its processes fork from now on.
	Follow(ctx context.Context, app string) error
	// Release removes an application and its probes. Its processes continue; kill ends those
	// that the monitor started.
	Release(ctx context.Context, app string, kill bool) error

	// Do executes a MIR request about an application. The document is nil if MIR defines no
	// answer: a request that only sets defaults or flushes has none.
	Do(ctx context.Context, app string, doc mir.Document) (mir.Document, error)
	// Explain returns what Do would do, without doing it.
	Explain(ctx context.Context, app string, doc mir.Document) (mir.Document, error)

	// Programs lists the executables and libraries of the application's processes.
	Programs(ctx context.Context, app string) ([]string, error)
	// Loaded lists the executables and libraries of one process, given by its token or its pid.
	Loaded(ctx context.Context, app, process string) ([]string, error)
	// Structure returns the structure of the application's programs: of the given files, or of
	// all if files is empty. A file that the application has not loaded is read only if
	// configured returns true for it. tag changes with the structure.
	Structure(ctx context.Context, app string, files []string, configured func(file string) bool) (s *sir.Structure, tag string, err error)
	// Inside returns a part of a structure with the regions inside its functions.
	Inside(ctx context.Context, app string, s *sir.Structure) (*sir.Structure, error)
	// FindPlacements finds in which placements the regions of a structure can be measured: of one that Inside has
	// returned, or of a part of it.
	FindPlacements(ctx context.Context, app string, s *sir.Structure) error

	// Locks lists the locks for which threads of an application wait at present.
	Locks(ctx context.Context, app string) ([]api.Lock, error)
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

	// Trace sends the events of a probe's trace until cancel is called or the probe ends.
	Trace(id string) (batches <-chan probes.TracedBatch, cancel func(), err error)

	// OMISRole returns the role that a request requires according to the table of services:
	// Read for a request that cannot be parsed, whose reply contains the error.
	OMISRole(request string) Role
	// OMIS sends a request for a tool and waits for the first reply. The first request
	// creates the tool. With omis.BufferRequest, the reply may be nil.
	OMIS(ctx context.Context, tool, request string, flags omis.Flags) (omis.Reply, error)
	// Replies sends the further replies of a tool's requests, and errors of no request (OMIS
	// 7.1.3), until cancel is called. It begins after the reply with the number after; if
	// that is 0, with the replies that no stream has sent yet.
	Replies(tool string, after uint64) (replies <-chan StreamedReply, cancel func(), err error)
	// Describe adds prototypes of library functions. name is the name of their file in
	// messages.
	Describe(name, text string) error
	// Finalize ends a tool that OMIS created (OMIS 7.1.4).
	Finalize(tool string) error

	// Catalog lists the metrics.
	Catalog() []Metric
	// Services lists the OMIS services.
	Services() []service.Service
	// Tools lists the tools of the monitor, by their names.
	Tools() []Tool
	// Schemas returns the files for GET /schemas/….
	Schemas() fs.FS
	// Ready returns the reason why the monitor cannot serve requests, nil if it can.
	Ready() error
}

// StreamedReply is a reply on the stream of a tool. Each reply has the number after that of
// the previous one; the first is 1.
type StreamedReply struct {
	ID    uint64
	Reply omis.Reply
}

// The gateway sends these as JSON; package mir/api defines them, except the rows of the catalog.
type (
	App           = api.App
	Process       = api.Process
	Probe         = api.Probe
	AppRequest    = api.AppRequest
	LaunchRequest = api.LaunchRequest
	Metric        = translate.Metric
)

// Tool is a tool of the monitor (OMIS 7.1).
type Tool struct {
	Name        string `json:"name" xml:"name,attr"`
	Application bool   `json:"application" xml:"application,attr"` // the tool of an application, not created by POST /omis
	Streams     int    `json:"streams" xml:"streams,attr"`         // open streams of its replies
}

// Service is a row of the answer to GET /omis/services.
type Service struct {
	Name      string `json:"name" xml:"name,attr"`
	Kind      string `json:"kind" xml:"kind,attr"`
	Prototype string `json:"prototype" xml:"prototype,attr"`
	Role      string `json:"role" xml:"role,attr"`
	Support   string `json:"support" xml:"support,attr"` // full, partial or unsupported
	Local     bool   `json:"local" xml:"local,attr"`     // an action that can run where its event is detected
	Doc       string `json:"doc" xml:",chardata"`
}
