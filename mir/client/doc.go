// Package client finds a running gateway and sends requests to it. It starts no goroutines.
package client
