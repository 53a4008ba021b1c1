// Package k6options reads the options of k6 from where k6 reads them beside
// the script: flags, environment variables and the configuration file.
package k6options
