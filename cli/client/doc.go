// Package client finds a running gateway and sends requests to it. Only the commands of cli
// import it. It starts no goroutines.
package client
