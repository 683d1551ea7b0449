"""Who ksp is to an API server and how it knows the server: kubeconfig, credentials, certificates, proxies."""
