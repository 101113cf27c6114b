package service

import "mirador/omis"

// monitorServices returns the services for the objects of the monitor itself (OMIS 8.2).
func monitorServices() []Service {
	event := TokenParam("user_event", omis.ClassUserEvent)
	list := []Service{
		{
			Name: "csr_enable", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc:   "enable conditional requests: watch for their events",
			Linux: "the first watch at a place plants the instrumentation, further watches share it",
		},
		{
			Name: "csr_disable", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc:   "disable conditional requests; they remain defined",
			Linux: "the last watch at a place removes the instrumentation",
		},
		{
			Name: "csr_delete", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc:   "delete conditional requests",
			Linux: "disables first",
		},
		{
			Name: "user_event_create", Class: omis.ClassUserEvent, Kind: Manipulation, Result: "token", Role: Control,
			Doc:   "create a user defined event and return its token",
			Linux: "in the monitor's memory",
		},
		{
			Name: "user_event_raise", Class: omis.ClassUserEvent, Kind: Manipulation, Object: omis.ClassUserEvent,
			Params: []Param{event, AnyParam("params"), IntegerParam("resume")}, Role: Control,
			Doc:   "raise a user defined event; params become its context parameters par1, par2 …",
			Linux: "the action lists are executed before it returns, unless it resumes the thread; at most 16 events are nested",
		},
		{
			Name: "user_event_destroy", Class: omis.ClassUserEvent, Kind: Manipulation, Object: omis.ClassUserEvent,
			Params: []Param{event}, Role: Control,
			Doc:   "destroy a user defined event",
			Linux: "in the monitor's memory",
		},
		{
			Name: "user_event_has_been_raised", Class: omis.ClassUserEvent, Kind: Event, Object: omis.ClassUserEvent,
			Params: []Param{event}, OpenContext: true, Role: Control,
			Doc:   "a user defined event has been raised",
			Linux: "reported by the engine, in the order of definition",
		},
		{
			Name: "print", Kind: Information, Params: []Param{AnyParam("args")},
			Result: "struct { integer numargs; any* args; }", Local: true, Role: Read,
			Doc:   "return the arguments",
			Linux: "in the monitor's memory",
		},
		{
			Name: "version", Kind: Information, Role: Read,
			Result: "struct { integer omis_major; integer omis_minor; string ocm_ident; integer ocm_major; integer ocm_minor; }",
			Doc:    "return the versions of the specification and of the monitor",
			Linux:  "in the monitor's memory",
		},
		{
			Name: "extensions", Kind: Information, Role: Read,
			Result: "struct { integer numext; string* extension; }",
			Doc:    "return the prefixes of the extensions",
			Linux:  "from this table",
		},
		{
			Name: "services", Kind: Information, Params: []Param{StringParam("extension")}, Role: Read,
			Result: "struct { integer numfully; string* fully_impl; integer numpart; string* part_impl; }",
			Doc:    "return the services of an extension, or the basic ones, that are supported",
			Linux:  "from this table, without the services that the nodes cannot provide",
		},
	}
	for i := range list {
		list[i].Need, list[i].Support = Required, wholly()
	}
	return list
}
