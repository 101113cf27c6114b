package engine

import (
	"maps"

	"mirador/omis/node"
)

// basicActions returns the implementations of the basic manipulation and information services (OMIS 8). A
// test compares them with the table.
func (e *Engine) basicActions() map[string]action {
	all := map[string]action{
		"node_attach":  {each: nodeAttach},
		"node_attach2": {each: nodeAttach2},
		"node_detach":  {each: nodeDetach},

		"proc_create":     {each: procCreate},
		"proc_attach":     {each: procAttach},
		"proc_attach3":    {each: procAttach3},
		"proc_detach":     {each: procDetach},
		"proc_checkpoint": {batch: procCheckpoint},
		"proc_restore":    {each: procRestore},
		"proc_migrate":    {each: procMigrate, wide: true},

		"thread_detach": {each: threadDetach},

		"message_insert_into_queue": {each: messaging(messageInsert)},
		"message_queue_remove":      {each: messaging(messageRemove)},
		"message_create":            {each: messageCreate},
		"message_copy":              {each: messaging(messageCopy)},

		"csr_enable":  {batch: csrEnable},
		"csr_disable": {batch: csrDisable},
		"csr_delete":  {batch: csrDelete},

		"user_event_create":  {each: userEventCreate, free: true},
		"user_event_raise":   {each: userEventRaise},
		"user_event_destroy": {each: userEventDestroy, free: true},

		"print":      {each: printArgs, local: printLocal, free: true},
		"version":    {each: version, free: true},
		"extensions": {each: extensions, free: true},
		"services":   {each: services, free: true},
	}
	for name, a := range spreadActions() {
		a.spread = true
		all[name] = a
	}
	return all
}

// spreadActions returns the implementations that nodes may execute concurrently.
func spreadActions() map[string]action {
	all := map[string]action{
		"node_get_info": {each: nodeGetInfo},

		"message_queue_clear":    {each: messaging(messageClear)},
		"message_tag":            {each: messaging(messageTag)},
		"message_destroy":        {each: messaging(messageDestroy)},
		"message_queue_get_info": {each: messaging(messageQueueGetInfo)},
	}
	maps.Copy(all, processActions())
	maps.Copy(all, threadActions())
	return all
}

func processActions() map[string]action {
	return map[string]action{
		"proc_send_signal":      {each: procSendSignal},
		"proc_set_priority":     {each: procSetPriority},
		"proc_write_memory":     {each: procWriteMemory},
		"proc_write_memory_bin": {each: procWriteMemoryBin},
		"proc_get_info":         {each: procGetInfo, ahead: procsAhead, crowded: true},
		"proc_read_memory":      {each: procReadMemory},
		"proc_read_memory_bin":  {each: procReadMemoryBin},
		"proc_get_loader_info":  {each: procGetLoaderInfo},
	}
}

func threadActions() map[string]action {
	return map[string]action{
		"thread_stop":           {batch: threadStop, leads: true},
		"thread_continue":       {batch: threadContinue, leads: true},
		"thread_suspend":        {batch: threadSuspend},
		"thread_resume":         {batch: threadResume},
		"thread_send_signal":    {each: threadSendSignal},
		"thread_set_priority":   {each: threadSetPriority},
		"thread_write_int_regs": {each: threadWriteIntRegs},
		"thread_write_fp_regs":  {each: threadWriteFPRegs},
		"thread_goto":           {each: threadGoto},
		"thread_call":           {each: threadCall},
		"thread_get_info":       {each: threadGetInfo, ahead: threadsAhead, crowded: true},
		"thread_get_backtrace":  {batch: threadGetBacktrace},
		"thread_read_int_regs":  {each: threadReadIntRegs},
		"thread_read_fp_regs":   {each: threadReadFPRegs},
	}
}

// basicSources returns the implementations of the basic event services.
func (e *Engine) basicSources() map[string]source {
	return map[string]source{
		"proc_has_terminated":       {kind: node.EventProcTerminated},
		"proc_has_been_stopped":     {kind: eventProcStopped},
		"proc_has_been_continued":   {kind: eventProcContinued},
		"proc_has_been_scheduled":   {kind: node.EventScheduled},
		"proc_has_been_descheduled": {kind: node.EventDescheduled},
		"proc_will_be_migrated":     {kind: eventWillMigrate},
		"proc_has_been_migrated":    {kind: eventMigrated},

		"thread_adds_node":               {kind: node.EventNodeAdded},
		"thread_removes_node":            {kind: node.EventNodeRemoved},
		"thread_creates_proc":            {kind: node.EventProcCreated},
		"thread_creates_thread":          {kind: node.EventThreadCreated},
		"thread_has_terminated":          {kind: node.EventThreadTerminated},
		"thread_received_signal":         {kind: node.EventSignal, numbers: 1},
		"thread_has_blocked":             {kind: node.EventBlocked},
		"thread_has_been_unblocked":      {kind: node.EventUnblocked},
		"thread_has_been_stopped":        {kind: node.EventThreadStopped},
		"thread_has_been_continued":      {kind: node.EventThreadContinued},
		"thread_has_been_scheduled":      {kind: node.EventScheduled},
		"thread_has_been_descheduled":    {kind: node.EventDescheduled},
		"thread_reached_addr":            {kind: node.EventReachedAddr, address: 1},
		"thread_executed_insn":           {kind: node.EventStepped},
		"thread_executed_insn_call":      {kind: node.EventSteppedOver},
		"thread_has_started_lib_call":    {kind: node.EventLibCallStarted, call: 1},
		"thread_has_ended_lib_call":      {kind: node.EventLibCallEnded, call: 1},
		"thread_has_started_sys_call":    {kind: node.EventSysCallStarted, call: 1},
		"thread_has_ended_sys_call":      {kind: node.EventSysCallEnded, call: 1},
		"thread_has_received_tagged_msg": {kind: node.EventTaggedMessage, numbers: 1},

		"message_queue_has_been_extended": {kind: node.EventQueueExtended},

		"user_event_has_been_raised": {user: true},
	}
}
