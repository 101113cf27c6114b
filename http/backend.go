package gateway

import (
	"context"
	"io/fs"

	"mirador/mir"
	"mirador/omis"
	"mirador/omis/node"
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
	// Probe describes one of them; false: there is none of this id.
	Probe(id string) (Probe, bool)
	// CountProbes counts them, without a look at any.
	CountProbes() int
	// Subscribe sends the measurement documents of a probe until cancel is called
	// or the probe is removed.
	Subscribe(id string) (documents <-chan *mir.Measurement, cancel func(), err error)

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
	Services() []Service
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

// App is an application: a name for processes that are observed together.
type App struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // running, terminated
	Owner     int       `json:"owner"` // the uid of its processes
	Processes []Process `json:"processes"`
}

// Process is a process of an application.
type Process struct {
	Token   omis.Token `json:"token"`
	PID     int        `json:"pid"`
	Argv    []string   `json:"argv,omitempty"`
	Started bool       `json:"started"` // by the monitor
	Gone    bool       `json:"gone"`    // it has terminated
}

// Probe is the state of a MIR probe.
type Probe struct {
	ID        string   `json:"id"`
	App       string   `json:"app"`
	State     string   `json:"state"`
	Region    string   `json:"region,omitempty"`
	Metrics   []string `json:"metrics"`
	Placement string   `json:"placement,omitempty"`
	Why       string   `json:"why,omitempty"`
	Cost      float64  `json:"cost,omitempty"` // predicted nanoseconds a hit
	Gone      bool     `json:"gone,omitempty"` // its processes have terminated
	Failure   string   `json:"failure,omitempty"`
	Requests  []string `json:"requests,omitempty"`

	Calibrated bool    `json:"calibrated,omitempty"` // Cost was measured on this machine
	Rough      bool    `json:"rough,omitempty"`      // Cost is not precise: not measured, or dependent on the other load of the machine
	Bias       float64 `json:"bias,omitempty"`       // nanoseconds that were taken off each time it reports
	Notice     string  `json:"notice,omitempty"`     // what became of it unasked
	Spent      *Spent  `json:"spent,omitempty"`      // what it costs its processes; nothing where that is not known
}

// Spent is what a probe has cost since it was activated, and what it costs now.
type Spent struct {
	Hits     int64   `json:"hits"`
	Lost     int64   `json:"lost"`
	Rate     float64 `json:"hits_per_second"`
	PerHit   float64 `json:"ns_per_hit"`
	Share    float64 `json:"share"`    // of the processes' time, from 0 to 1
	Dilation float64 `json:"dilation"` // of that time: with the probe, over without it
	Budget   float64 `json:"budget,omitempty"`
	Rough    bool    `json:"rough,omitempty"` // PerHit is not precise, or Share is so great that Dilation is not
}

// Metric is a row of the metric catalog (MIR 8).
type Metric struct {
	Name     string   `json:"name" xml:"name,attr"`
	Unit     string   `json:"unit" xml:"unit,attr"`
	Kind     string   `json:"kind" xml:"kind,attr"`
	Entities []string `json:"entities" xml:"entity"`
	Region   bool     `json:"region" xml:"region,attr"` // measured where a region is executed
	What     string   `json:"what" xml:"what"`
	How      string   `json:"how" xml:"how"`
}

// Tool is a tool of the monitor (OMIS 7.1).
type Tool struct {
	Name        string `json:"name" xml:"name,attr"`
	Application bool   `json:"application" xml:"application,attr"` // its own, not made by POST /omis
	Streams     int    `json:"streams" xml:"streams,attr"`         // that read its replies now
}

// Service is a row of the table of OMIS services.
type Service struct {
	Name      string `json:"name" xml:"name,attr"`
	Kind      string `json:"kind" xml:"kind,attr"`
	Prototype string `json:"prototype" xml:"prototype,attr"`
	Role      string `json:"role" xml:"role,attr"`
	Support   string `json:"support" xml:"support,attr"` // full, partial or unsupported
	Local     bool   `json:"local" xml:"local,attr"`     // an action that may run where its event is recognised
	Doc       string `json:"doc" xml:",chardata"`
}
