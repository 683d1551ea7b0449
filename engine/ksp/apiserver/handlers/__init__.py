"""What each verb does with objects: create, update, patch, delete, get, list, watch; subresources and reviews."""
