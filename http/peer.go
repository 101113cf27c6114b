package gateway

import "fmt"

// peer makes a caller of a uid: root and the server's own user may do everything,
// others what they could do to their own processes.
func peer(uid, server int) *Caller {
	return &Caller{
		Name: fmt.Sprintf("uid %d", uid),
		Role: Debug,
		UID:  uid,
		All:  uid == 0 || uid == server,
	}
}
