package gateway

import "fmt"

// peer returns the caller with a uid. Root and the server's user may do everything, other
// users only what they could do with their own processes.
func peer(uid, server int) *Caller {
	return &Caller{
		Name: fmt.Sprintf("uid %d", uid),
		Role: Debug,
		UID:  uid,
		All:  uid == 0 || uid == server,
	}
}
