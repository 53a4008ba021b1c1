// Package k6http is the JavaScript module "k6/http".
//
// A request goes this way: arguments.go and params.go read what the script
// asks for, perform.go does it hop by hop, on a transport that belongs to the
// VU (transport.go, dialer.go), and samples.go and response.go tell the run and
// the script what came of it. Performing a request never touches the
// JavaScript runtime, so that batch and asyncRequest can do it from other
// goroutines.
package k6http
