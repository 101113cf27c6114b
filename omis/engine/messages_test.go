package engine_test

import (
	"testing"

	"mirador/omis"
	"mirador/omis/node"
)

func TestMessages(t *testing.T) {
	b := start(t)
	p, q := b.node.Add(1, nil, 11), b.node.Add(2, nil, 21)
	q.Queues = []node.QueueID{7}
	b.ask(`: proc_attach3([],1,"") proc_attach3([],2,"") thread_get_info([],0)`)
	b.want(": proc_get_info([],0x80) thread_get_info([],16)", "0 OMIS_OK []\n1 OMIS_OK [p_1] u_0\n1 OMIS_OK [p_2] q_1\n2 OMIS_OK [t_1,t_2] u_0\n")
	c := b.listen("message_queue_has_been_extended([q_1]) : message_tag([$msg],5) print([$queue,$msg,$sender,$size,$monitor_tag,$proc])", omis.DontReturnEnDis)
	d := b.listen("thread_has_received_tagged_msg([],[5]) : print([$msg,$monitor_tag])", omis.DontReturnEnDis)
	b.ask(": csr_enable([])")
	p.Send(11, q, 100)
	c.want("0 OMIS_CSR_TRIGGERED(10) [q_1] c_1\n1 OMIS_OK []\n2 OMIS_OK [] 6,[q_1,m_1,t_1,100,0,p_2]\n")
	b.want(": message_queue_get_info([p_2],15) message_queue_get_info([q_1],0)", "0 OMIS_OK []\n1 OMIS_OK [q_1] 1,[m_1,t_1,100,5]\n2 OMIS_OK [q_1] 1,[]\n")
	q.Receive(21)
	d.want("0 OMIS_CSR_TRIGGERED(10) [t_2] c_2\n1 OMIS_OK [] 2,[m_1,5]\n")
	b.want(": message_create() message_copy(m_1,m_2) message_insert_into_queue(m_1,q_1,-1) message_insert_into_queue(m_2,q_1,0)",
		"0 OMIS_OK []\n1 OMIS_OK [] m_2\n2 OMIS_OK []\n3 OMIS_OK []\n4 OMIS_OK []\n")
	b.want(": message_queue_get_info([],9) message_queue_remove(q_1,m_2) message_queue_remove(q_1,m_2) message_destroy([m_2]) message_tag([],6) message_queue_get_info([],9)",
		"0 OMIS_OK []\n1 OMIS_OK [q_1] 2,[m_2,5,m_1,5]\n2 OMIS_OK []\n3 OMIS_PARAMETER_ERROR(28) [q_1] \"message 2 is not in queue 7\"\n4 OMIS_OK []\n5 OMIS_OK []\n6 OMIS_OK [q_1] 1,[m_1,6]\n")
	b.want(": message_queue_clear([]) message_queue_get_info([],0) message_tag([m_2],1) message_tag([m_1],0)",
		"0 OMIS_OK []\n1 OMIS_OK []\n2 OMIS_OK [q_1] 0,[]\n3 OMIS_UNKNOWN_OBJECT(24) [m_2] \"no such message token: m_2\"\n4 OMIS_PARAMETER_ERROR(28) [m_1] \"tag 0 means that a message has none\"\n")
	q.End()
	eventually(t, func() bool { return len(b.objects(": proc_get_info([],0)", 1)) == 1 })
	b.want(": message_queue_get_info([q_1],0)", "0 OMIS_OK []\n1 OMIS_UNKNOWN_OBJECT(24) [q_1] \"no such message queue token: q_1\"\n")
}
