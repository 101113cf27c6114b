package service

import "mirador/omis"

// monitorServices returns the services for the objects of the monitor itself (OMIS 8.2).
func monitorServices() []Service {
	event := TokenParam("user_event", omis.ClassUserEvent)
	list := []Service{
		{
			Name: "csr_enable", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc: "enable conditional requests: watch for their events",
		},
		{
			Name: "csr_disable", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc: "disable conditional requests; they remain defined",
		},
		{
			Name: "csr_delete", Class: omis.ClassCSR, Kind: Manipulation, Object: omis.ClassCSR,
			Params: []Param{csrList()}, Role: Control,
			Doc: "delete conditional requests",
		},
		{
			Name: "user_event_create", Class: omis.ClassUserEvent, Kind: Manipulation, Result: "token", Role: Control,
			Doc: "create a user defined event and return its token",
		},
		{
			Name: "user_event_raise", Class: omis.ClassUserEvent, Kind: Manipulation, Object: omis.ClassUserEvent,
			Params: []Param{event, AnyParam("params"), IntegerParam("resume")}, Role: Control,
			Doc: "raise a user defined event; params become its context parameters par1, par2 …",
		},
		{
			Name: "user_event_destroy", Class: omis.ClassUserEvent, Kind: Manipulation, Object: omis.ClassUserEvent,
			Params: []Param{event}, Role: Control,
			Doc: "destroy a user defined event",
		},
		{
			Name: "user_event_has_been_raised", Class: omis.ClassUserEvent, Kind: Event, Object: omis.ClassUserEvent,
			Params: []Param{event}, OpenContext: true, Role: Control,
			Doc: "a user defined event has been raised",
		},
		{
			Name: "print", Kind: Information, Params: []Param{AnyParam("args")},
			Result: "struct { integer numargs; any* args; }", Local: true, Role: Read,
			Doc: "return the arguments",
		},
		{
			Name: "version", Kind: Information, Role: Read,
			Result: "struct { integer omis_major; integer omis_minor; string ocm_ident; integer ocm_major; integer ocm_minor; }",
			Doc:    "return the versions of the specification and of the monitor",
		},
		{
			Name: "extensions", Kind: Information, Role: Read,
			Result: "struct { integer numext; string* extension; }",
			Doc:    "return the prefixes of the extensions",
		},
		{
			Name: "services", Kind: Information, Params: []Param{StringParam("extension")}, Role: Read,
			Result: "struct { integer numfully; string* fully_impl; integer numpart; string* part_impl; }",
			Doc:    "return the services of an extension, or the basic ones, that are supported",
		},
	}
	for i := range list {
		list[i].Need, list[i].Support = Required, wholly()
	}
	return list
}
