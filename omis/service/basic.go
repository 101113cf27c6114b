package service

import (
	"slices"

	"mirador/omis"
)

// Basic returns the table of the basic services (OMIS 8).
func Basic() Table {
	services := slices.Concat(
		nodeServices(),
		processActions(), processEvents(),
		threadActions(), threadEvents(),
		messageServices(),
		monitorServices(),
	)
	return Table{
		Services: services,
		Classes: []omis.Class{
			omis.ClassNode, omis.ClassProcess, omis.ClassThread, omis.ClassQueue,
			omis.ClassMessage, omis.ClassUserEvent, omis.ClassCSR, omis.ClassUndefined,
		},
	}
}

func wholly() Support                   { return Support{Level: Full} }
func partly(reason string) Support      { return Support{Level: Partial, Reason: reason} }
func unsupported(reason string) Support { return Support{Level: Unsupported, Reason: reason} }

// Parameters that most services have.
func nodeList() Param   { return TokensParam("node_list", omis.ClassNode) }
func procList() Param   { return TokensParam("proc_list", omis.ClassProcess) }
func threadList() Param { return TokensParam("thread_list", omis.ClassThread) }
func queueList() Param  { return TokensParam("queue_list", omis.ClassQueue) }
func msgList() Param    { return TokensParam("msg_list", omis.ClassMessage) }
func csrList() Param    { return TokensParam("csr_list", omis.ClassCSR) }
