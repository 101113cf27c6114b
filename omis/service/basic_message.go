package service

import "mirador/omis"

// messageServices returns the services for messages and message queues (OMIS 8.1.4).
func messageServices() []Service {
	msg := func(name string) Param { return TokenParam(name, omis.ClassMessage) }
	list := []Service{
		{
			Name: "message_insert_into_queue", Kind: Manipulation, Object: omis.ClassMessage,
			Params: []Param{msg("msg"), TokenParam("queue", omis.ClassQueue), IntegerParam("pos")}, Role: Debug,
			Doc: "insert a message into a queue",
		},
		{
			Name: "message_queue_remove", Kind: Manipulation, Object: omis.ClassQueue,
			Params: []Param{TokenParam("queue", omis.ClassQueue), msg("msg")}, Role: Debug,
			Doc: "remove a message from a queue",
		},
		{
			Name: "message_queue_clear", Kind: Manipulation, Object: omis.ClassQueue,
			Params: []Param{queueList()}, Role: Debug,
			Doc: "delete all messages of queues",
		},
		{
			Name: "message_tag", Kind: Manipulation, Object: omis.ClassMessage,
			Params: []Param{msgList(), IntegerParam("tag")}, Role: Debug,
			Doc: "tag messages, invisibly for the application",
		},
		{
			Name: "message_create", Kind: Manipulation, Result: "token", Role: Debug,
			Doc: "create a message and return its token",
		},
		{
			Name: "message_copy", Kind: Manipulation, Object: omis.ClassMessage,
			Params: []Param{msg("src"), msg("dst")}, Role: Debug,
			Doc: "copy a message into another one",
		},
		{
			Name: "message_destroy", Kind: Manipulation, Object: omis.ClassMessage,
			Params: []Param{msgList()}, Role: Debug,
			Doc: "destroy messages",
		},
		{
			Name: "message_queue_get_info", Kind: Information, Object: omis.ClassQueue,
			Params: []Param{queueList(), IntegerParam("flags")},
			Result: "struct { integer queue_length; Message_info* messages; }", Role: Read,
			Doc: "return the messages in message queues",
		},
		{
			Name: "message_queue_has_been_extended", Kind: Event, Object: omis.ClassQueue,
			Params: []Param{queueList()}, Role: Control,
			Context: []Param{
				TokenParam("queue", omis.ClassQueue), msg("msg"), TokenParam("sender", omis.ClassThread),
				IntegerParam("size"), IntegerParam("monitor_tag"),
			},
			Doc: "a message has been appended to a queue",
		},
	}
	for i := range list {
		list[i].Need, list[i].Needs, list[i].Support = Optional, Messages, wholly()
	}
	return under(omis.ClassMessage, list)
}
