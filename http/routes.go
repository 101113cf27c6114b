package gateway

import "net/http"

// Route is a row of the table of routes, which the router, the page and the access checks read.
type Route struct {
	Method    string
	Pattern   string
	Role      Role // the least role; a request may require more
	Documents bool // errors are answered as MIR documents, not as problem details
	Doc       string
	handle    func(*Server, *exchange) error
}

// Routes is the table of routes.
func Routes() []Route {
	return []Route{
		{Method: http.MethodPost, Pattern: "/mir", Role: Read, Documents: true, handle: (*Server).postOnlyApp,
			Doc: "a MIR document, for the only application"},
		{Method: http.MethodPost, Pattern: "/apps/{app}/mir", Role: Read, Documents: true, handle: (*Server).postApp,
			Doc: "a MIR document, for an application"},

		{Method: http.MethodGet, Pattern: "/apps", Role: Read, handle: (*Server).listApps,
			Doc: "the applications and their processes"},
		{Method: http.MethodPost, Pattern: "/apps", Role: Control, handle: (*Server).createApp,
			Doc: `start a program or attach to processes: {"name":"…","launch":{"path":"…","args":[…]}} or {"attach":[PID,…]}; "paused":true starts the program only as far as its libraries are mapped`},
		{Method: http.MethodDelete, Pattern: "/apps", Role: Control, handle: (*Server).releaseApps,
			Doc: "release every application; ?kill=true ends what was started"},
		{Method: http.MethodGet, Pattern: "/apps/{app}", Role: Read, handle: (*Server).getApp,
			Doc: "one application"},
		{Method: http.MethodPost, Pattern: "/apps/{app}", Role: Control, handle: (*Server).createApp,
			Doc: "the same as POST /apps, the name in the path"},
		{Method: http.MethodDelete, Pattern: "/apps/{app}", Role: Control, handle: (*Server).releaseApp,
			Doc: "release an application; ?kill=true ends what was started"},
		{Method: http.MethodPost, Pattern: "/apps/{app}/continue", Role: Control, handle: (*Server).continueApp,
			Doc: "continue the programs that were started paused"},
		{Method: http.MethodGet, Pattern: "/apps/{app}/locks", Role: Read, handle: (*Server).listLocks,
			Doc: "the locks for which threads wait at present, with the threads that hold them where the lock shows it"},
		{Method: http.MethodGet, Pattern: "/apps/{app}/sir", Role: Read, Documents: true, handle: (*Server).getStructure,
			Doc: "the structure of the running programs (ETag); ?depth=2 includes the regions inside functions, ?depth=3 those inside these, and so on; ?grep=EXPRESSION returns only the regions whose ids or names match, and those around them; ?prefix=ID&most=N returns a list of at most N regions whose ids begin with it; ?placements=true says in which placements regions can be measured, and why not in others"},

		{Method: http.MethodGet, Pattern: "/probes", Role: Read, handle: (*Server).listProbes,
			Doc: "the probes: state, placement, cost, OMIS requests"},
		{Method: http.MethodGet, Pattern: "/probes/{id}", Role: Read, handle: (*Server).getProbe,
			Doc: "one probe"},
		{Method: http.MethodGet, Pattern: "/probes/{id}/stream", Role: Read, handle: (*Server).streamProbe,
			Doc: "a probe's measurement documents as server-sent events; goes on after the event of Last-Event-ID (or ?after=ID); an event \"lost\" has the number of documents that were missed"},
		{Method: http.MethodGet, Pattern: "/probes/{id}/trace", Role: Read, handle: (*Server).traceProbe,
			Doc: "a probe's event trace as JSON for Perfetto and chrome://tracing, from now on, after the events that the monitor still has; ends after ?for=10s, with the probe or with the connection"},

		{Method: http.MethodPost, Pattern: "/omis", Role: Read, handle: (*Server).postOMIS,
			Doc: "an OMIS request (?tool=NAME, ?flags=SUM as in OMIS 7.1.1); the reply as XML (/schemas/omis.xsd), or as text/plain in OMIS notation"},
		{Method: http.MethodGet, Pattern: "/omis/tools/{tool}/replies", Role: Read, handle: (*Server).streamReplies,
			Doc: "the further replies of a tool's requests as server-sent events: XML (/schemas/omis.xsd), or in OMIS notation with ?format=text or, safe for binary data, ?format=base64; goes on behind the event of Last-Event-ID (or ?after=ID), else behind what a stream has had already"},
		{Method: http.MethodGet, Pattern: "/omis/tools", Role: Read, handle: (*Server).listTools,
			Doc: "the tools of the monitor: those of applications and those that POST /omis made"},
		{Method: http.MethodDelete, Pattern: "/omis/tools/{tool}", Role: Control, handle: (*Server).finalize,
			Doc: "end a tool that POST /omis made, with its conditional requests"},
		{Method: http.MethodPost, Pattern: "/omis/prototypes", Role: Control, handle: (*Server).postPrototypes,
			Doc: "prototypes of library functions (?file=NAME, for the messages)"},
		{Method: http.MethodGet, Pattern: "/omis/services", Role: Nobody, handle: (*Server).getServices,
			Doc: "the table of OMIS services"},

		{Method: http.MethodGet, Pattern: "/catalog", Role: Nobody, handle: (*Server).getCatalog,
			Doc: "the metric catalog"},
		{Method: http.MethodGet, Pattern: "/schemas/*", Role: Nobody, handle: (*Server).getSchema,
			Doc: "the schemas of the documents"},
		{Method: http.MethodGet, Pattern: "/metrics", Role: Read, handle: (*Server).getMetrics,
			Doc: "the gateway's own metrics, and the values of probes with a label (OpenMetrics)"},
		{Method: http.MethodGet, Pattern: "/healthz", Role: Nobody, handle: (*Server).getHealth,
			Doc: "200 while the process lives"},
		{Method: http.MethodGet, Pattern: "/readyz", Role: Nobody, handle: (*Server).getReady,
			Doc: "200 while requests can be served, 503 and why otherwise"},
		{Method: http.MethodGet, Pattern: "/", Role: Nobody, handle: (*Server).getPage,
			Doc: "this page"},
	}
}
