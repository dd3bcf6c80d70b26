"""The generated platform over HTTP: everything that it says follows from its blueprint."""
