package engine

import "mirador/omis"

// basicActions are the implementations of the basic manipulation and information
// services (OMIS 8). A test proves that they are those the table calls supported.
func (e *Engine) basicActions() map[string]action {
	return map[string]action{
		"node_attach":   {each: nodeAttach},
		"node_attach2":  {each: nodeAttach2},
		"node_detach":   {each: nodeDetach},
		"node_get_info": {each: nodeGetInfo},

		"proc_create":          {each: procCreate},
		"proc_attach":          {each: procAttach},
		"proc_attach3":         {each: procAttach3},
		"proc_detach":          {each: procDetach},
		"proc_send_signal":     {each: procSendSignal},
		"proc_get_info":        {each: procGetInfo},
		"proc_read_memory":     {each: procReadMemory},
		"proc_read_memory_bin": {each: procReadMemoryBin},
		"proc_get_loader_info": {each: procGetLoaderInfo},

		"thread_stop":          {batch: threadStop},
		"thread_continue":      {batch: threadContinue},
		"thread_get_info":      {each: threadGetInfo},
		"thread_get_backtrace": {batch: threadGetBacktrace},

		"csr_enable":  {each: csrEnable},
		"csr_disable": {each: csrDisable},
		"csr_delete":  {each: csrDelete},

		"user_event_create":  {each: userEventCreate},
		"user_event_raise":   {each: userEventRaise},
		"user_event_destroy": {each: userEventDestroy},

		"print":      {each: printArgs, local: printLocal},
		"version":    {each: version},
		"extensions": {each: extensions},
		"services":   {each: services},
	}
}

// basicSources are the implementations of the basic event services.
func (e *Engine) basicSources() map[string]source {
	return map[string]source{
		"proc_has_terminated":        {kind: omis.EventProcTerminated},
		"thread_creates_proc":        {kind: omis.EventProcCreated},
		"thread_creates_thread":      {kind: omis.EventThreadCreated},
		"thread_has_terminated":      {kind: omis.EventThreadTerminated},
		"thread_reached_addr":        {kind: omis.EventReachedAddr, address: 1},
		"user_event_has_been_raised": {user: true},
	}
}
